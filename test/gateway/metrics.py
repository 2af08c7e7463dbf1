"""The page for Prometheus: its sums are right, and promtool, if installed, accepts it."""

import re
import shutil
import subprocess

from rig import Gateway, Masters, run

SAMPLE = re.compile(r'([a-z_]+)(?:\{([a-z_]+="[^"\\\n]*",?)+\})? ([0-9.eE+-]+|\+Inf)')


def each_line_is_of_the_format():
    gateway = Gateway(Masters())
    gateway.release(gateway.acquire("k"))
    gateway.ask("GET", "/nothing")
    text = gateway.ask("GET", "/metrics").text
    types, seen = {}, set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line.split()[2:]
            assert name not in types, f"{name} twice"
            types[name] = kind
        elif not line.startswith("# HELP "):
            name = SAMPLE.match(line)
            assert name and name.end() == len(line), line
            family = re.sub("_(bucket|sum|count)$", "", name.group(1))
            assert family in types or name.group(1) in types, line
            sample = line.rsplit(" ", 1)[0]
            assert sample not in seen, f"{sample} twice"
            seen.add(sample)
    assert 'redlock_gateway_answers_total{route="acquire",status="201"} 1' in text
    assert 'redlock_gateway_answers_total{route="release",status="204"} 1' in text
    assert 'redlock_gateway_answers_total{route="none",status="404"} 1' in text
    assert 'redlock_requests_total{outcome="acquired"} 1' in text
    gateway.stop()


def promtool_finds_no_fault():
    promtool = shutil.which("promtool")
    if promtool is None:
        print("# not checked: promtool is not installed")
        return
    gateway = Gateway(Masters())
    gateway.release(gateway.acquire("k"))
    checked = subprocess.run(
        [promtool, "check", "metrics"],
        input=gateway.ask("GET", "/metrics").text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0 and checked.stderr == "", checked
    gateway.stop()


if __name__ == "__main__":
    run(each_line_is_of_the_format, promtool_finds_no_fault)
