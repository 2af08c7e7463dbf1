"""A headless Chromium, driven over the WebDriver protocol."""

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

import rig

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")


class Browser:
    def __init__(self, width=1000, height=1100):
        self.folder = tempfile.TemporaryDirectory(
            prefix="redlock-page-", ignore_cleanup_errors=True
        )
        self.session = None
        self.process = self.start_driver()
        rig.adopt(self)
        self.url = f"http://127.0.0.1:{self.wait_for_port()}/session"
        arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            f"--user-data-dir={self.folder.name}",
            f"--window-size={width},{height}",
        ]
        options = {"binary": CHROMIUM, "args": arguments}
        capabilities = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self.send("POST", "", {"capabilities": {"alwaysMatch": capabilities}})
        self.session = made["sessionId"]
        self.url += "/" + self.session

    def start_driver(self):
        return rig.start(
            [DRIVER, "--port=0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            env=dict(os.environ, HOME=self.folder.name, TMPDIR=self.folder.name),
        )

    def wait_for_port(self):
        """Returns the driver's port. It takes a free one of IPv6, and ends if another program (most
        often another test) has the same one of IPv4: then it is started again."""
        said = ""
        for line in iter(lambda: self.process.stdout.readline(), ""):
            said += line
            if "successfully on port" in line:
                return int(line.rsplit(" ", 1)[1].rstrip(".\n"))
            if "port not available" in line:
                self.process.wait()
                self.process.stdout.close()
                self.process = self.start_driver()
        raise AssertionError(f"chromedriver does not start: {said}")

    def send(self, method, path, body=None):
        request = urllib.request.Request(
            self.url + path,
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=rig.TIMEOUT_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error.read().decode()}") from error

    def open(self, url):
        self.send("POST", "/url", {"url": url})

    def evaluate(self, script, *arguments):
        """Runs the body of a function in the page, and returns its value."""
        return self.send("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def text(self, selector):
        return self.evaluate("return document.querySelector(arguments[0]).innerText", selector)

    def until_text(self, selector, text):
        """Waits until an element contains a text; returns the whole text."""
        return rig.until(
            lambda: text in self.text(selector) and self.text(selector),
            f"{selector} has {text!r}",
        )

    def prefer(self, **preferences):
        """Sets preferences of the user, such as prefers_color_scheme="dark"."""
        features = [
            {"name": name.replace("_", "-"), "value": value} for name, value in preferences.items()
        ]
        self.send(
            "POST",
            "/goog/cdp/execute",
            {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}},
        )

    def resize(self, width, height):
        """Sets the size of the page, for instance to that of a phone."""
        parameters = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True}
        self.send(
            "POST",
            "/goog/cdp/execute",
            {"cmd": "Emulation.setDeviceMetricsOverride", "params": parameters},
        )

    def type(self, selector, text):
        found = self.send(
            "POST", "/element", {"using": "css selector", "value": selector}
        )
        self.send("POST", f"/element/{list(found.values())[0]}/value", {"text": text})

    def save_screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.send("GET", "/screenshot")))

    def complaints(self):
        """Returns the errors of the console, such as violations of the content policy."""
        entries = self.send("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def end(self):
        try:
            if self.session is not None:
                self.send("DELETE", "")
        except (OSError, AssertionError):
            pass
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()
