"""Checks the prose of pages, comments and manuals against a list of words and openings; prints TAP.

    prose.py SOURCES

Each rule is a pattern and what to write instead. Code is not prose: fenced blocks, text in
backticks or quotes, and everything in sources but comments and, where users see them, strings.
First, each rule must find a sentence that breaks it, and pass one that does not; and each kind of
file must be split into prose and code.
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
    (r"(?:^|(?<=[.:;] ))(?-i:Who|Whom|What|So many|So much|Of these|Of those|Of which)\b(?![^.]*\?)",
     "a sentence with subject, verb and object", "Who holds the key renews it.",
     "What is a fence? A number."),
]


def blank(match):
    """Returns spaces in place of a match, so that lines keep their numbers."""
    return re.sub(r"[^\n]", " ", match.group())


def without_code(text):
    """Blanks text in backticks and quotes: it names code, messages and formats."""
    text = re.sub(r"`[^`]*`", blank, text)
    return re.sub(r'"[^"\n]*(?:\n[^"\n]*)?"', blank, text)


def keep(pattern, text, flags=re.S | re.M):
    """Blanks everything but the matches of a pattern."""
    kept, end = [], 0
    for match in re.finditer(pattern, text, flags):
        kept.append(re.sub(r"[^\n]", " ", text[end:match.start()]))
        kept.append(match.group())
        end = match.end()
    return "".join(kept) + re.sub(r"[^\n]", " ", text[end:])


def prose_of_source(text):
    strings = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    unquoted = lambda match: match.group() if match.group()[0] == "/" else blank(match)
    text = re.sub(r"/\*.*?\*/|//[^\n]*|" + strings, unquoted, text, flags=re.S)
    text = keep(r"/\*.*?\*/|//[^\n]*", text)
    text = re.sub(r"^(\s*)\*/?", lambda m: " " * len(m.group()), text, flags=re.M)
    return re.sub(r"/\*|\*/|//", "  ", text)


def texts_of_source(text):
    """Keeps the strings of a source, and joins those that the compiler joins."""
    text = re.sub(r'\\"[^"\\\n]*\\"', blank, text)
    strings = r'/\*.*?\*/|//[^\n]*|\'(?:\\.|[^\'\\\n])*\'|^ *#include[^\n]*'
    literal = r'"(?:\\.|[^"\\\n])*"'
    unquoted = lambda match: match.group() if match.group()[0] == '"' else blank(match)
    text = re.sub(strings + "|" + literal, unquoted, text, flags=re.S | re.M)
    text = re.sub(r'"(\s*)"', lambda m: " " + m.group(1) + " ", keep(literal, text))
    text = re.sub(r"\\[nt]", ". ", text)
    return text.replace('"', " ")


def prose_of_lua(text):
    return re.sub(r"--", "  ", keep(r"--[^\n]*", text))


def prose_of_page(text):
    text = re.sub(r"^```.*?^```", blank, text, flags=re.S | re.M)
    text = re.sub(r"\]\([^)]*\)", blank, text)
    return re.sub(r"^(?:#+ .*|\|)", blank, text, flags=re.M)


def prose_of_manual(text):
    text = re.sub(r"^\.Bd -literal.*?^\.Ed", blank, text, flags=re.S | re.M)
    return keep(r"^[^.\n].*", text, re.M)


def prose_of_script(text):
    return re.sub(r"#", " ", keep(r"(?:^|(?<=\s))#(?!!).*", text, re.M))


def prose_of_python(text):
    docstrings_and_comments = r'^ *""".*?"""|(?:^|(?<=\s))#(?!!)[^\n]*'
    return re.sub(r'"""|#', "   ", keep(docstrings_and_comments, text))


def prose_of_mutant(text):
    return keep(r"\A.*?(?=^@@)", text)


# (names of files, their prose, the text of one, the lines of it on which the prose has "told")
KINDS = [
    (r"\.(?:c|h|cpp|hpp)$", prose_of_source,
     'told(); /* It is\n * told. */\ntold("//told");\n', [2]),
    (r"\.lua$", prose_of_lua, "told() -- It is told.\ntold()\n", [1]),
    (r"\.md$", prose_of_page, "It is\ntold by `told`.\n\n```\ntold\n```\n", [2]),
    (r"\.[1-8]$", prose_of_manual, ".Nm told\nIt is told.\n.Bd -literal\ntold\n.Ed\n", [2]),
    (r"\.py$", prose_of_python, '"""It is\ntold."""\ntold("told")\t# told\n', [2, 3]),
    (r"(?:\.(?:sh|awk)|(?:^|/)meson\.build)$", prose_of_script,
     "#!/bin/told\n# It is told.\ntold=${told#told}\t# told\n", [2, 3]),
    (r"\.mutant$", prose_of_mutant, "It is told.\n\n@@\n told\n+told\n@@\n-told\n", [1]),
]

# The strings that users see: the log, errors, help, and what the simulator and its like print.
SEEN = (r"^(?:include|lib|bench|examples|test/(?:sim|chaos|torture|support))/.*\.(?:c|h|hpp|cpp)$",
        texts_of_source,
        'log("It is"\n    " told.\\n"); /* "told" */\nlog("it is \\"told\\"");\nlog("told");\n', [2, 4])


def prose_of(name, text):
    """Returns the text of a file with all but its prose blanked; None if it is of no kind."""
    for names, prose, _, _ in KINDS:
        if re.search(names, name):
            return without_code(prose(text))
    return None


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def sentences(text):
    """Returns the text with each paragraph's line ends and indents blanked, at the same offsets."""
    return re.sub(r"\n[ \t]*(?=\S)", lambda m: " " * len(m.group()), text)


def padded(text):
    """Returns the sentences of a text, with "\\0" in place of each blank after another."""
    return re.sub(r"(?<=[^ ]) +", lambda m: " " + "\0" * (len(m.group()) - 1), sentences(text))


def breaks(rule, text, flat=None):
    """Yields the line of each break of a rule, and the words there. `flat` is padded(text)."""
    flat = flat or padded(text)
    for match in re.finditer(rule[0], flat.replace("\0", ""), re.M | re.I):
        kept = [i for i, character in enumerate(flat) if character != "\0"]
        yield text.count("\n", 0, kept[match.start()]) + 1, match.group()


def files(sources):
    listed = subprocess.run(["git", "-C", sources, "ls-files"], capture_output=True, text=True)
    names = listed.stdout.splitlines()
    if listed.returncode != 0:  # a release's archive
        names = [os.path.relpath(os.path.join(folder, name), sources)
                 for folder, _, found in os.walk(sources) for name in found]
    return sorted(name for name in names if any(re.search(kind[0], name) for kind in KINDS))


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
    for names, prose, text, expected in KINDS + [SEEN]:
        number += 1
        found = [line for line, _ in breaks(RULES[0], without_code(prose(text)))]
        failed |= found != expected
        print("%sok %d - the prose of files is found, and their code is not: %s" %
              ("" if found == expected else "not ", number, names))
    texts = [(name, prose_of(name, read(os.path.join(sources, name)))) for name in files(sources)]
    texts += [(name, without_code(SEEN[1](read(os.path.join(sources, name)))))
              for name in files(sources) if re.search(SEEN[0], name)]
    texts = [(name, text, padded(text)) for name, text in texts]
    for rule in RULES:
        number += 1
        found = ["%s:%d: %s" % (name, line, what) for name, text, flat in texts
                 for line, what in breaks(rule, text, flat)]
        failed |= bool(found)
        print("%sok %d - %s: write %s" % ("not " if found else "", number, rule[2], rule[1]))
        for text in found:
            print("# " + text)
    print("1..%d" % number)
    return 1 if failed else 0


sys.exit(main())
