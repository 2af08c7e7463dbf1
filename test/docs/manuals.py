"""Checks the manuals against the headers and the programs, and prints TAP:

    manuals.py SOURCES [REDLOCK-BENCH]

  redlock(3)        has the prototype of each public function, each field of options and requests,
                    their defaults that are numbers, and each status
  redlock-bench(1)  has each option that --help names, and no other
  all manuals       `mandoc -T lint` finds no errors and no warnings, if it is installed
"""

import glob
import os
import re
import shutil
import subprocess
import sys

count = 0
failed = False


def report(name, problems):
    global count, failed
    count += 1
    print(f"{'not ok' if problems else 'ok'} {count} - {name}")
    for problem in problems:
        failed = True
        print(f"# {problem}")


def squeeze(text):
    """Removes all space that makes no difference in C."""
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r" ?([*(),]) ?", r"\1", text)


def without_comments(source):
    return re.sub(r"/\*.*?\*/", " ", source, flags=re.S)


def text_of_headers(sources):
    """Returns the public headers of C, one after the other."""
    text = ""
    for path in sorted(glob.glob(os.path.join(sources, "include/**/*.h"), recursive=True)):
        with open(path, encoding="utf-8") as file:
            text += file.read()
    return text


def prototypes_of_headers(code):
    found = re.findall(r"(?:REDLOCK_EXPORT|static inline) ([a-zA-Z][^;#{]*?\)) ?[;{]", code)
    is_private = re.compile(r"_\(")  # callbacks inside a header
    return {squeeze(prototype) for prototype in found if not is_private.search(prototype)}


def words_of(line):
    """Returns the arguments of a macro: words, or texts in quotes."""
    return [quoted or word for quoted, word in re.findall(r'"([^"]*)"|(\S+)', line)]


def prototypes_of_manual(page):
    synopsis = page.split(".Sh SYNOPSIS")[1].split("\n.Sh ")[0]
    found = set()
    kind = None
    for line in synopsis.splitlines():
        if line.startswith(".Ft "):
            kind = words_of(line[4:])[0]
        elif line.startswith(".Fn "):
            name, *arguments = words_of(line[4:])
            found.add(squeeze(f"{kind} {name}({', '.join(arguments)})"))
    return found


def fields_of(code, struct):
    """Returns the names of the fields of a struct, without its size."""
    body = re.search(rf"struct {struct} \{{(.*?)\n\}}", code, re.S)[1]
    return [name for name in re.findall(r"(\w+);", body) if name != "size"]


def defaults_of(code, macro):
    """Returns {field: number} of an _INIT macro."""
    defaults = code.split(f"#define {macro}")[1].split("}")[0]
    found = re.findall(r"REDLOCK_OPTION\((\w+),\s*([^)]+\)?)\)", defaults)
    numbers = {}
    for field, value in found:
        number = re.fullmatch(r"(?:UINT64_C\()?([0-9][0-9.]*)\)?", value)
        if number and field != "size" and float(number[1]) > 0:
            numbers[field] = number[1]
    return numbers


def items_of(page, section):
    """Returns {name: text} of the list in a section of a manual."""
    items = {}
    body = re.split(r"\n\.S[hs] ", page.split(f".Ss {section}\n")[1])[0]
    for item in body.split("\n.It Va ")[1:]:
        names, _, text = item.partition("\n")
        for name in re.findall(r"\w+", names):
            items[name] = text
    return items


def check_fields(code, page, section, struct):
    """Checks that a section lists the fields of a struct, with their defaults."""
    items = items_of(page, section)
    fields = fields_of(code, struct)
    problems = [f"{field} is missing" for field in fields if field not in items]
    problems += [f"there is no {name}" for name in items if name not in fields]
    for field, number in defaults_of(code, f"{struct.upper()}_INIT").items():
        if not re.search(rf"\b{re.escape(number)}\b", items.get(field, "")):
            problems.append(f"{field}: the default is {number}")
    report(f"redlock(3): {section.lower()}, and their defaults", problems)


# Lists have their counts and lengths, and hooks are set by functions of their own.
UNNAMED = r"node_count|key_length|key_lengths|key_count|allocator|(log|trace|on_lost)(_arg)?"


def check_settings(code, sources):
    """Checks that each field of the options and requests can be set by its name."""
    with open(os.path.join(sources, "lib/settings.c"), encoding="utf-8") as file:
        tables = re.findall(r"\w+_fields\[\] = \{(.*?)\n\};", file.read(), re.S)
    problems = []
    for table, struct in zip(tables, ["redlock_options", "redlock_request"], strict=True):
        named = set(re.findall(r'\{"(\w+)", ', table))
        named |= set(re.findall(r"(?:OPTION|TERM)\((\w+)", table))
        named |= set(re.findall(r"WORD_OF\(\w+, (\w+)", table))
        fields = {name for name in fields_of(code, struct) if not re.fullmatch(UNNAMED, name)}
        problems += [f"{struct}.{name} has no name" for name in sorted(fields - named)]
        problems += [f"{struct} has no {name}" for name in sorted(named - fields)]
    report("settings: each field has its name", problems)


def check_library(sources):
    code = re.sub(r"[ \t\\]*\n", "\n", without_comments(text_of_headers(sources)))
    with open(os.path.join(sources, "lib/doc/redlock.3"), encoding="utf-8") as file:
        page = file.read()
    wanted, told = prototypes_of_headers(code), prototypes_of_manual(page)
    problems = [f"missing, or not as in the headers: {p}" for p in sorted(wanted - told)]
    problems += [f"not in the headers: {p}" for p in sorted(told - wanted)]
    if len(wanted) < 30:
        problems.append(f"the headers have {len(wanted)} functions only?")
    report("redlock(3): prototypes", problems)
    described = page.split(".Sh DESCRIPTION")[1].split(".Sh RETURN VALUES")[0]
    names = [re.search(r"(\w+)\(", prototype)[1] for prototype in sorted(wanted)]
    missing = [name for name in names if not re.search(rf"Fn {name}\b", described)]
    report("redlock(3): each function is described", missing)
    check_fields(code, page, "Options", "redlock_options")
    check_fields(code, page, "Requests", "redlock_request")
    check_settings(code, sources)
    statuses = re.findall(r"\bXX\((\w+), -?[0-9]+,", code)
    missing = [name for name in statuses if f"REDLOCK_{name}" not in page]
    report("redlock(3): statuses", missing if statuses else ["none in the headers?"])


def check_bench(sources, program):
    printed = subprocess.run([program, "--help"], capture_output=True, text=True, check=True)
    wanted = set(re.findall(r"--([a-z][a-z-]*)", printed.stdout))
    with open(os.path.join(sources, "bench/redlock-bench.1"), encoding="utf-8") as file:
        page = file.read()
    described = set(re.findall(r"^\.It Fl -([a-z-]+)", page, re.M))
    problems = [f"missing: --{option}" for option in sorted(wanted - described)]
    problems += [f"there is no --{option}" for option in sorted(described - wanted)]
    report("redlock-bench(1): options", problems)


def manuals_of(sources):
    found = []
    for part in ("bench", "examples", "lib"):
        for folder, _, names in os.walk(os.path.join(sources, part)):
            found += [os.path.join(folder, n) for n in names if re.search(r"\.[1-8]$", n)]
    return sorted(found)


def check_with_mandoc(manuals):
    if shutil.which("mandoc") is None:
        report("mandoc # SKIP is not installed", [])
        return
    for manual in manuals:
        told = subprocess.run(
            ["mandoc", "-T", "lint", "-W", "warning", manual],
            capture_output=True,
            text=True,
            check=False,
        )
        problems = told.stdout.splitlines()
        if told.returncode != 0 and not problems:
            problems = [told.stderr]
        report(f"mandoc {os.path.basename(manual)}", problems)


def main():
    sources = sys.argv[1]
    check_library(sources)
    if len(sys.argv) > 2:
        check_bench(sources, sys.argv[2])
    manuals = manuals_of(sources)
    report("manuals are found", [] if len(manuals) >= 4 else manuals)
    check_with_mandoc(manuals)
    print(f"1..{count}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
