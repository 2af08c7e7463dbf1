"""The page in headless Chromium, while masters go down and come back.

If REDLOCK_TEST_SCREENSHOT names a file, the screenshot for the README is written there.
"""

import os
import signal

import driver
from raw import post
from rig import Gateway, Masters, run, skip, token_file, until

COLOURS = ("text", "faint", "good", "warn", "bad", "focus")
CONTRAST = """
    const style = getComputedStyle(document.documentElement);
    const luminance = (name) => {
        const hex = style.getPropertyValue("--" + name).trim();
        const [r, g, b] = [1, 3, 5].map((i) => {
            const c = parseInt(hex.slice(i, i + 2), 16) / 255;
            return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const pair = [luminance(arguments[0]), luminance("back")];
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
"""


def show(*arguments, count=5):
    """Starts masters, a gateway, and a browser on its page."""
    masters = Masters(count)
    gateway = Gateway(masters, *arguments)
    browser = driver.Browser()
    browser.open(f"http://127.0.0.1:{gateway.port}/")
    return masters, gateway, browser


def masters_go_down_and_come_back():
    masters, gateway, browser = show()
    browser.until_text("#quorum", "5 of 5 grant locks; 3 are needed.")
    assert browser.text("#state") == "live"
    gateway.acquire("orders:42", owner="worker-1", fenced=True)
    gateway.acquire("report:daily", owner="cron")
    waiting = gateway.connect()
    terms = b'{"wait_ms": 600000, "owner": "worker-2"}'
    waiting.request("POST", "/v1/locks/orders:42", terms, {"Content-Type": "application/json"})
    browser.until_text("#waiting", "1")
    masters.order("kill", 1)
    browser.until_text("#quorum", "4 of 5 grant locks")
    name = f"127.0.0.1:{masters.ports[1]}"
    row = browser.text("#nodes tr:nth-child(2)")
    assert name in row and "down: " in row, row
    browser.until_text("#changes", f"{name} is down. 4 of 5 grant locks; 3 are needed.")
    browser.until_text("#locks", "worker-1")
    assert "report:daily" in browser.text("#locks")
    browser.until_text("#waiters", "worker-2")
    screenshot = os.environ.get("REDLOCK_TEST_SCREENSHOT")
    if screenshot:
        browser.save_screenshot(screenshot)
    masters.order("kill", 2)
    masters.order("kill", 3)
    browser.until_text("#quorum", "2 of 5 grant locks")
    assert browser.evaluate("return document.getElementById('quorum').className") == "bad"
    for index in (1, 2, 3):
        masters.order("restart", index)
    browser.until_text("#quorum", "5 of 5 grant locks")
    assert "is trusted" in browser.text("#changes")
    assert browser.complaints() == []
    waiting.close()


def texts_are_texts():
    _, gateway, browser = show(count=1)
    gateway.acquire("%3Cimg%20src=x%20onerror=alert(1)%3E", owner="<b>&amp;")
    browser.until_text("#held", "1")
    row = browser.text("#locks")
    assert "<img src=x onerror=alert(1)>" in row and "<b>&amp;" in row, row
    assert browser.evaluate("return document.querySelectorAll('main img, main b').length") == 0
    assert browser.complaints() == []


def keys_are_shown_in_their_script():
    """Unreadable and invisible characters are shown as they are in a path, and so is each "%"."""
    _, gateway, browser = show(count=1)
    keys = {
        "%E9%8D%B5%20%D0%BA%D0%BB%D1%8E%D1%87": "\u9375 \u043a\u043b\u044e\u0447",
        "%D9%85%D9%81%D8%AA%D8%A7%D8%AD": "\u0645\u0641\u062a\u0627\u062d",
        "a%2Fb": "a/b",
        "a%252Fb": "a%252Fb",
        "a%FFb": "a%FFb",
        "a%00b": "a%00b",
        "a%E2%80%AEb": "a%E2%80%AEb",
        "a%C2%A0b": "a%C2%A0b",
    }
    for key in keys:
        gateway.acquire(key)
    browser.until_text("#held", str(len(keys)))
    for text in keys.values():
        browser.until_text("#locks", text)
    assert browser.evaluate("return document.querySelectorAll('#locks tr').length") == len(keys)


def rows_that_are_left_out_are_reported():
    _, gateway, browser = show(count=1)
    for number in range(50):
        gateway.acquire(f"k{number}")
    browser.until_text("#held", "50")
    assert browser.text("#locks-shown") == ""
    for number in range(50, 55):
        gateway.acquire(f"k{number}")
    waiting = [gateway.dial(post("k0", '{"wait_ms": 600000}')) for _ in range(53)]
    browser.until_text("#locks-shown", "50 of 55 are shown.")
    browser.until_text("#waiters-shown", "50 of 53 are shown.")
    for client in waiting:
        client.close()
    until(lambda: browser.text("#waiters-shown") == "", "none is left out")


BROKEN_WORDS = r"""
    const broken = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode()); ) {
        for (const word of node.data.matchAll(/[\p{L}\p{N}:._]+/gu)) {
            const range = document.createRange();
            range.setStart(node, word.index);
            range.setEnd(node, word.index + word[0].length);
            if (new Set([...range.getClientRects()].map((it) => it.top)).size > 1) {
                broken.push(word[0]);
            }
        }
    }
    return broken;
"""


def no_word_breaks_on_a_phone():
    masters, gateway, browser = show()
    gateway.acquire("orders:42", owner="worker-1", fenced=True)
    gateway.acquire("reports:monthly:2026", owner="cron.reports", mode="writer")
    waiting = gateway.dial(post("orders:42", '{"wait_ms": 600000, "owner": "worker-2"}'))
    masters.order("kill", 1)
    browser.until_text("#quorum", "4 of 5 grant locks")
    browser.until_text("#waiters", "worker-2")
    for width in (360, 320):
        browser.resize(width, 800)
        assert browser.evaluate(BROKEN_WORDS) == [], width
        page = browser.evaluate("return document.documentElement.scrollWidth")
        assert page <= width, f"the page is {page} wide"
    waiting.close()


def it_is_readable_on_a_phone_in_the_dark_and_at_rest():
    _, gateway, browser = show()
    gateway.acquire("k" * 500, owner="x" * 64)
    browser.until_text("#held", "1")
    for scheme in ("light", "dark"):
        browser.prefer(prefers_color_scheme=scheme)
        for colour in COLOURS:
            ratio = browser.evaluate(CONTRAST, colour)
            assert ratio >= 4.5, f"{colour} in the {scheme}: {ratio}"
    back = browser.evaluate("return getComputedStyle(document.body).backgroundColor")
    assert back == "rgb(13, 17, 23)", back
    animation = "return getComputedStyle(document.getElementById('held')).animationName"
    browser.evaluate("document.getElementById('held').className = 'changed'")
    browser.prefer(prefers_reduced_motion="reduce")
    assert browser.evaluate(animation) == "none"
    browser.resize(320, 640)
    width = browser.evaluate("return document.documentElement.scrollWidth")
    assert width <= 320, f"the page is {width} wide"


def a_screen_reader_finds_its_way():
    _, _, browser = show(count=1)
    browser.until_text("#state", "live")
    faults = browser.evaluate(
        """
        const all = (selector) => [...document.querySelectorAll(selector)];
        const faults = [];
        const note = (bad, text) => bad && faults.push(text);
        note(!document.documentElement.lang, "no language");
        note(!document.title, "no title");
        note(all("h1").length !== 1, "not one h1");
        note(all("main").length !== 1, "not one main");
        note(all("th:not([scope])").length > 0, "a head of nothing");
        note(all("[aria-live], [role=status]").length !== 2, "too much is announced");
        for (const it of all("[aria-labelledby]")) {
            note(!document.getElementById(it.getAttribute("aria-labelledby")), "no label");
        }
        const regions = all("section, form, [role=region]").filter(
            (it) => it.tagName !== "SECTION" || it.matches("[aria-label], [aria-labelledby]")
        );
        const names = regions.map(
            (it) =>
                it.ariaLabel ??
                document.getElementById(it.getAttribute("aria-labelledby"))?.textContent
        );
        note(names.some((it) => !it), "a landmark without a label");
        note(new Set(names).size !== names.length, `landmarks of one label: ${names}`);
        note(all("input").some((it) => it.labels.length !== 1), "a field without a label");
        note(all("tbody tr").some((it) => it.cells[0].tagName !== "TH"), "a row without a head");
        return faults;
        """
    )
    assert faults == [], faults


def a_token_is_asked_for():
    with token_file("0123456789abcdef") as file:
        _, _, browser = show("--token-file", file.name, count=1)
    browser.until_text("#state", "A token is needed.")
    assert browser.evaluate("return document.getElementById('main').hidden")
    browser.type("#token", "wrong-wrong-wrong\n")
    browser.until_text("#state", "That token is not known.")
    browser.type("#token", "0123456789abcdef\n")
    browser.until_text("#state", "live")
    assert browser.evaluate("return document.getElementById('login').hidden")


def a_gateway_that_ends_is_reported():
    _, gateway, browser = show(count=1)
    browser.until_text("#state", "live")
    gateway.stop()
    browser.until_text("#state", "Trying again")
    until(
        lambda: "does not answer" in browser.text("#state"), "the page says what is the matter"
    )
    assert browser.text("#quorum") == "Last known: 1 of 1 grant locks; 1 are needed."
    assert shows_no_health(browser)


def shows_no_health(browser):
    return browser.evaluate(
        """
        const good = [...document.querySelectorAll("main .good")].map(
            (it) => getComputedStyle(it).color
        );
        const faint = getComputedStyle(document.querySelector("dt")).color;
        return good.length > 0 && good.every((it) => it === faint);
        """
    )


def a_gateway_that_hangs_is_reported():
    _, gateway, browser = show(count=1)
    browser.until_text("#state", "live")
    assert not shows_no_health(browser)
    gateway.process.send_signal(signal.SIGSTOP)
    browser.until_text("#quorum", "Last known: 1 of 1 grant locks")
    assert "does not answer" in browser.text("#state") and shows_no_health(browser)
    gateway.process.send_signal(signal.SIGCONT)
    browser.until_text("#state", "live")
    assert browser.text("#quorum") == "1 of 1 grant locks; 1 are needed."
    assert not shows_no_health(browser)


if __name__ == "__main__":
    if not driver.CHROMIUM or not driver.DRIVER:
        skip("chromium or chromedriver is not installed: the page is not tested")
    run(
        masters_go_down_and_come_back,
        texts_are_texts,
        keys_are_shown_in_their_script,
        rows_that_are_left_out_are_reported,
        no_word_breaks_on_a_phone,
        it_is_readable_on_a_phone_in_the_dark_and_at_rest,
        a_screen_reader_finds_its_way,
        a_token_is_asked_for,
        a_gateway_that_ends_is_reported,
        a_gateway_that_hangs_is_reported,
    )
