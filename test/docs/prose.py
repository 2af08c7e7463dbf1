"""Checks the prose of pages, comments and manuals against a list of words and openings, and prints TAP.

    prose.py SOURCES

Each rule is a pattern and what to write in its place. Code is no prose: fenced blocks, text in
backticks or quotes, and everything in sources but comments. Before the sources are read, each rule
has to find a sentence that breaks it, and to pass one that does not.
"""

import os
import re
import subprocess
import sys

# (pattern, what to write, a sentence that breaks the rule, one that does not)
RULES = [
    (r"\b(?:tell|tells|telling|told)\b(?! (?:\w+ ){0,3}apart)", "report, notify, return, log, say",
     "The lock is told of it.", "One can tell the two apart."),
    (r"\bnews\b", "notification", "The news are delivered.", "A newsletter is not affected."),
    (r"(?<!left )(?<!leaves )(?<!nothing )(?<!further )(?<!days )(?<!is )\bbehind\b"
     r"(?! (?:\w+ )?(?:proxy|proxies|firewall|NAT|balancer|addresses))",
     "after", "The reply comes behind the call.", "A server behind a proxy leaves nothing behind."),
    (r"\b(?:whoever|whomever|whatever it|elsewise|which else|who else)\b", "a plain subject",
     "Whoever releases it looks.", "Each holder that releases it looks."),
    (r"\bin vain\b", "without result", "It waits in vain.", "It waits without result."),
    (r"\bof another make\b", "foreign", "A client of another make has it.", "A foreign client has it."),
    (r"\b(?:stands?|stood|standing|waits?|waited|waiting|first|those|dies?|hangs?) in line\b",
     "in the queue", "It waits in line.", "The word is in line 3."),
    (r"\b(?:payday|farewell|forgives?|forgiven)\b",
     "the field's word: retry timer, close deadline, drop", "The payday is near.",
     "The retry timer is due."),
    (r"\b(?:twin|twins)\b", "duplicate", "The node is a twin.", "The node is a duplicate."),
    (r"\bdebts?\b", "pending release", "A debt is paid.", "A pending release is sent."),
    (r"\b(?:a|an|one) (?:thirty-second|sixty-fourth|sixteenth|thirty-secondth)\b", "1/32, 1/64, 1/16",
     "It takes a sixteenth of the time.", "It takes 1/16 of the time."),
    (r"(?:^|(?<=[.:;] ))(?:Who|Whom|What|So many|So much|Of these|Of those|Of which)\b(?![^.]*\?)",
     "a sentence with subject, verb and object", "Who holds the key renews it.",
     "What is a fence? A number."),
]

SOURCES = (".c", ".h", ".cpp", ".hpp")
PAGES = (".md",)


def without_code(text):
    """Blanks text in backticks and quotes: it names code, messages and formats."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    text = re.sub(r"`[^`]*`", blank, text)
    return re.sub(r'"[^"\n]*(?:\n[^"\n]*)?"', blank, text)


def keep(pattern, text):
    """Blanks everything but the matches of a pattern, so that lines keep their numbers."""
    kept, end = [], 0
    for match in re.finditer(pattern, text, re.S | re.M):
        kept.append(re.sub(r"[^\n]", " ", text[end:match.start()]))
        kept.append(match.group())
        end = match.end()
    return "".join(kept) + re.sub(r"[^\n]", " ", text[end:])


def prose_of_source(text):
    strings = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    blank = lambda match: match.group() if match.group()[0] == "/" else re.sub(
        r"[^\n]", " ", match.group())
    text = re.sub(r"/\*.*?\*/|//[^\n]*|" + strings, blank, text, flags=re.S)
    text = keep(r"/\*.*?\*/|//[^\n]*", text)
    text = re.sub(r"^(\s*)\*/?", lambda m: " " * len(m.group()), text, flags=re.M)
    return re.sub(r"/\*|\*/|//", "  ", text)


def prose_of_lua(text):
    return re.sub(r"--", "  ", keep(r"--[^\n]*", text))


def prose_of_page(text):
    text = re.sub(r"^```.*?^```", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S | re.M)
    text = re.sub(r"\]\([^)]*\)", lambda m: " " * len(m.group()), text)
    return re.sub(r"^(?:#+ .*|\|)", lambda m: " " * len(m.group()), text, flags=re.M)


def prose_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    if path.endswith(SOURCES):
        text = prose_of_source(text)
    elif path.endswith(".lua"):
        text = prose_of_lua(text)
    else:
        text = prose_of_page(text)
    return without_code(text)


def sentences(text):
    """Returns the text with each paragraph's line ends and indents blanked, at the same offsets."""
    return re.sub(r"\n[ \t]*(?=\S)", lambda m: " " * len(m.group()), text)


def breaks(rule, text):
    """Yields the line numbers at which a rule is broken."""
    flat = re.sub(r"(?<=[^ ]) +", lambda m: " " + "\0" * (len(m.group()) - 1), sentences(text))
    positions = [i for i, character in enumerate(flat) if character != "\0"]
    flat = flat.replace("\0", "")
    flags = re.M if rule[0].startswith("(?:^|") else re.M | re.I
    for match in re.finditer(rule[0], flat, flags):
        yield text.count("\n", 0, positions[match.start()]) + 1, match.group()


def files(sources):
    listed = subprocess.run(["git", "-C", sources, "ls-files"], capture_output=True, text=True)
    names = listed.stdout.splitlines()
    if listed.returncode != 0:  # a release's archive
        names = [os.path.relpath(os.path.join(folder, name), sources)
                 for folder, _, found in os.walk(sources) for name in found]
    return sorted(name for name in names if name.endswith(SOURCES + PAGES + (".lua",)))


def main():
    sources = sys.argv[1]
    failed = False
    for number, rule in enumerate(RULES, 1):
        finds = any(True for _ in breaks(rule, rule[2]))
        passes = not any(True for _ in breaks(rule, rule[3]))
        failed |= not (finds and passes)
        print("%sok %d - the rule finds what breaks it, and passes what does not: %s" %
              ("" if finds and passes else "not ", number, rule[2]))
    number = len(RULES)
    texts = {name: prose_of(os.path.join(sources, name)) for name in files(sources)}
    for rule in RULES:
        number += 1
        found = ["%s:%d: %s" % (name, line, what) for name, text in texts.items()
                 for line, what in breaks(rule, text)]
        failed |= bool(found)
        print("%sok %d - %s: write %s" % ("not " if found else "", number, rule[2], rule[1]))
        for text in found:
            print("# " + text)
    print("1..%d" % number)
    return 1 if failed else 0


sys.exit(main())
