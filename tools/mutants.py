"""Small changes of C++ sources: where they are possible, a draw of some, and a source with all of them to choose from.

Looked at are the bodies of functions, token by token, as clang-format leaves them: a binary operator has blanks on both
sides, an angle bracket of a template has none before it. Passed over are strings, what is constant at compile time, the
texts of errors, assertions, `reserve`, and functions whose statements the rules below do not understand. A change may
still not compile: who uses a draw tries it.

KINDS  term        an operand of + - * / % && || and its operator are left out; += becomes =
       comparison  < becomes <= or >, == becomes !=, and so on
       condition   of if, while or ?: is negated
       sign        + becomes -, * becomes /, and the other way round
       constant    0 becomes 1, true becomes false, n becomes n - 1 or n + 1, a fraction a tenth more
       minmax      min becomes max, and the other way round
       statement   a call, an assignment, break, continue or an early return is left out
"""

import bisect
import dataclasses
import random
import re

KINDS = ("term", "comparison", "condition", "sign", "constant", "minmax", "statement")
TOKEN = re.compile(
    r"""(?P<blank>\s+)|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<directive>\#(?:[^\n\\]|\\.)*)
    |(?P<string>(?:u8|[uUL])?R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+')
    |(?P<number>\.?[0-9](?:[eEpP][+-]|'(?=[0-9A-Za-z])|[0-9A-Za-z_.])*)|(?P<name>[A-Za-z_]\w*)
    |(?P<sign><=>|<<=|>>=|->\*|\.\.\.|::|->|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)""",
    re.VERBOSE | re.DOTALL)
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
# How tightly binary operators bind; what is not here ends an expression.
BINDS = {"||": 2, "&&": 3, "|": 4, "^": 5, "&": 6, "==": 7, "!=": 7, "<": 8, ">": 8, "<=": 8, ">=": 8, "<=>": 9,
         "<<": 10, ">>": 10, "+": 11, "-": 11, "*": 12, "/": 12, "%": 12}
ASSIGNS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
ENDS = {";", ",", "?", ":", "return", "case", "throw", "else", "do"} | ASSIGNS
TURNED = {"<": ("<=", ">"), ">": (">=", "<"), "<=": ("<", ">="), ">=": (">", "<="), "==": ("!=",), "!=": ("==",)}
OTHER_SIGN = {"+": "-", "-": "+", "*": "/", "/": "*"}
OTHER_END = {"min": "max", "max": "min", "min_element": "max_element", "max_element": "min_element"}
FIXED = {"constexpr", "consteval", "static", "static_assert", "using", "typedef", "template", "operator", "noexcept"}
TEXTS = {"fail", "Error", "PIPEWEAVER_ASSERT", "reserve", "sizeof", "decltype", "noexcept"}
NO_CALL = {"if", "for", "while", "switch", "case", "default", "return", "throw", "else", "do", "try", "catch", "goto",
           "const", "auto", "struct", "enum", "class", "delete", "public", "private", "protected", "friend", "explicit",
           "virtual", "namespace"} | FIXED


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int
    end: int


@dataclasses.dataclass(frozen=True)
class Mutation:
    """The text of `file` from `start` to `end` may become `after`; the whole statement if it is one, else an
    expression."""

    file: str
    line: int
    kind: str
    start: int
    end: int
    before: str
    after: str
    is_statement: bool = False


class Source:
    """A source as tokens, each bracket with its partner, and the ranges of tokens that are bodies of functions."""

    def __init__(self, text):
        self.text = text
        self.lines = [0, *(found.end() for found in re.finditer("\n", text))]
        self.tokens = [Token(found.lastgroup if found.lastgroup != "mark" else "string", found[0], *found.span())
                       for found in TOKEN.finditer(text) if found.lastgroup not in ("comment", "directive", "blank")]
        self.partner = {}
        self._match()
        self.inside = self._brackets_around()
        self.bodies = dict(self._bodies(0, len(self.tokens)))

    def line_of(self, token):
        return bisect.bisect_right(self.lines, self.tokens[token].start)

    def word(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def is_spaced(self, i):
        """Whether the token has a blank or a line's end on both sides, as binary operators do."""
        token = self.tokens[i]
        return self.text[token.start - 1].isspace() and self.text[token.end].isspace()

    def _match(self):
        open_ones = []
        for i, token in enumerate(self.tokens):
            is_close = not self.text[token.start - 1].isspace()
            if token.text in OPENING or (token.text == "<" and is_close and self.tokens[i - 1].kind == "name"):
                open_ones.append(i)
            elif token.text == ">" and is_close and open_ones and self.word(open_ones[-1]) == "<":
                self._pair(open_ones.pop(), i)
            elif token.text in CLOSING:
                while open_ones and self.word(open_ones[-1]) == "<":
                    open_ones.pop()
                if open_ones:
                    self._pair(open_ones.pop(), i)

    def _brackets_around(self):
        """Per token the bracket that it is in, -1 if none."""
        around, open_ones = [], [-1]
        for i, token in enumerate(self.tokens):
            if token.text in CLOSING and len(open_ones) > 1:
                open_ones.pop()
            around.append(open_ones[-1])
            if token.text in OPENING:
                open_ones.append(i)
        return around

    def _pair(self, first, last):
        self.partner[first], self.partner[last] = last, first

    def _bodies(self, first, last):
        """Ranges of the bodies between two tokens at the level of namespaces and classes."""
        i = begin = first
        while i < last:
            word = self.word(i)
            if word in ("(", "["):
                i = self.partner.get(i, i)
            elif word in (";", "}"):
                begin = i + 1
            elif word == "{":
                end = self.partner.get(i, last)
                head = [self.word(k) for k in self.outermost(begin, i)]
                if "namespace" in head or (({"struct", "class"} & set(head)) and "(" not in head):
                    yield from self._bodies(i + 1, end)
                    begin = end + 1
                elif "(" in head and "=" not in head and not self.initializes(head):
                    if not FIXED & {"constexpr", "consteval"} & set(head):
                        yield i, end
                    begin = end + 1
                i = end
            i += 1

    def outermost(self, begin, end):
        """The tokens from `begin` to `end` that are in no bracket, the brackets included."""
        i = begin
        while i < end:
            yield i
            if i in self.partner and self.partner[i] > i:
                i = self.partner[i]
            i += 1

    @staticmethod
    def initializes(head):
        """Whether a brace behind this head gives a member its value in a constructor."""
        return ":" in head and re.fullmatch(r"\w+", head[-1]) is not None and head[-1] not in ("const", "noexcept")

    def extent(self, i, binds):
        """First and last token of the expression around token `i` whose operators bind at least so tightly."""
        return self._walk(i, -1, binds), self._walk(i, 1, binds)

    def _walk(self, i, step, binds):
        brackets = CLOSING if step < 0 else set(OPENING)
        while True:
            k = i + step
            word = self.word(k)
            if k in self.partner and (self.partner[k] - k) * step > 0:
                if word in "{}" and self.is_block(k if word == "{" else self.partner[k]):
                    return i
                i = self.partner[k]
                continue
            if not word or word in ENDS or word in OPENING or word in CLOSING or word in brackets:
                return i
            if word in BINDS and k not in self.partner and self.is_spaced(k) and BINDS[word] < binds:
                return i
            i = k

    def is_block(self, i):
        """Whether the opening brace begins a block of statements, not a value; a lambda's body is part of a value."""
        before = self.word(i - 1)
        if before == ")":
            behind = self.word(self.partner.get(i - 1, 0) - 1)
            return behind != "]"
        return before in (";", "{", "}", ":", "else", "do", "try")


def _left_out(source):
    """The tokens of a body's expressions that no change may touch."""
    out = set()
    for i in [k for first, last in source.bodies.items() for k in range(first, last)]:
        token = source.tokens[i]
        if i in source.partner and token.text == "<":
            out |= set(range(i, source.partner[i] + 1))
        elif token.text in TEXTS and source.word(i + 1) in ("(", "{") and i + 1 in source.partner:
            out |= set(range(i, source.partner[i + 1] + 1))
        elif token.text in ("constexpr", "static", "static_assert", "using") and source.word(i - 1) != "if":
            out |= set(range(i, _statement_end(source, i) + 1))
        elif token.text == "constexpr":
            out |= set(range(i, source.partner.get(i + 1, i) + 1))
        elif token.text == "case":
            out |= set(range(i, _next(source, i, ":") + 1))
    return out


def _next(source, i, word):
    while i < len(source.tokens) and source.word(i) != word:
        i += 1
    return i


def _statement_end(source, i):
    """The semicolon of the statement that token `i` begins, or the last token in its bracket."""
    while i < len(source.tokens) and source.word(i) != ";":
        if source.word(i) in CLOSING and source.partner.get(i, i + 1) < i:
            return i - 1
        i = source.partner[i] if i in source.partner and source.partner[i] > i else i
        i += 1
    return i


class Sites:
    """All mutations of a source."""

    def __init__(self, file, text):
        self.file, self.source = file, Source(text)
        self.out = _left_out(self.source)
        self.found = []
        for first, last in self.source.bodies.items():
            for i in range(first + 1, last):
                if i not in self.out:
                    self._at(i)
                    self._statement(i)
                    self._early_return(i)

    def _span(self, first, last):
        return self.source.tokens[first].start, self.source.tokens[last].end

    def _add(self, kind, at, first, last, after, is_statement=False):
        start, end = self._span(first, last)
        self.found.append(Mutation(self.file, self.source.line_of(at), kind, start, end, self.source.text[start:end],
                                   after, is_statement))

    def _without(self, first, last, gone_first, gone_last):
        """The text from token `first` to `last` without those from `gone_first` to `gone_last`."""
        start, end = self._span(first, last)
        cut, resume = self._span(gone_first, gone_last)
        return (self.source.text[start:cut].rstrip() + " " + self.source.text[resume:end].lstrip()).strip()

    def _replaced(self, first, last, i, word):
        start, end = self._span(first, last)
        token = self.source.tokens[i]
        return self.source.text[start:token.start] + word + self.source.text[token.end:end]

    def _at(self, i):
        token = self.source.tokens[i]
        if token.kind == "sign" and token.text in BINDS and i not in self.source.partner and self.source.is_spaced(i):
            self._operator(i, token.text)
        elif token.text == "?" and self.source.is_spaced(i):
            first = self.source.extent(i, 0)[0]
            self._negate(i, first, i - 1)
        elif token.text in ("if", "while") and self.source.word(i + 1) == "(":
            close = self.source.partner[i + 1]
            first = next((k + 1 for k in self.source.outermost(i + 2, close) if self.source.word(k) == ";"), i + 2)
            self._negate(i, first, close - 1)
        elif token.kind == "number" or token.text in ("true", "false"):
            for other in _other_numbers(token.text):
                self._add("constant", i, i, i, other)
        elif token.text in OTHER_END and self.source.word(i - 1) == "::":
            self._minmax(i, token.text)

    def _operator(self, i, word):
        source = self.source
        whole = source.extent(i, BINDS[word])
        if any(source.tokens[k].kind == "string" for k in range(whole[0], whole[1] + 1)) and word == "+":
            return
        if word in TURNED:
            for other in TURNED[word]:
                self._add("comparison", i, *whole, self._replaced(*whole, i, other))
            return
        if word in OTHER_SIGN:
            self._add("sign", i, *whole, self._replaced(*whole, i, OTHER_SIGN[word]))
        if word in ("&&", "||", "+", "-", "*", "/", "%"):
            operands = source.extent(i, BINDS[word] + 1)
            self._add("term", i, *whole, self._without(*whole, i, operands[1]))
            if operands[0] == whole[0] and word != "-":
                self._add("term", i, *whole, self._without(*whole, operands[0], i))

    def _negate(self, i, first, last):
        words = {self.source.word(k) for k in self.source.outermost(first, last + 1)}
        if not words & (ASSIGNS | {"auto"}):
            start, end = self._span(first, last)
            self._add("condition", i, first, last, f"!({self.source.text[start:end]})")

    def _minmax(self, i, word):
        source, first = self.source, i - 1
        while source.word(first) == "::" and source.tokens[first - 1].kind == "name":
            first -= 2
        first += source.word(first) != "::" and source.tokens[first + 1].kind == "name"
        first = first if source.tokens[first].kind == "name" else first + 1
        last = i + 1
        if source.word(last) == "<" and last in source.partner:
            last = source.partner[last] + 1
        if source.word(last) == "(":
            last = source.partner[last]
            self._add("minmax", i, first, last, self._replaced(first, last, i, OTHER_END[word]))

    def _begins(self, i):
        """Whether a statement begins at token `i`."""
        before = self.source.word(i - 1)
        if before == ")":
            head = self.source.word(self.source.partner.get(i - 1, 1) - 1)
            return head in ("if", "for", "while")
        is_first = before == "{" and (i - 1 in self.source.bodies or self.source.is_block(i - 1))
        return before in (";", "}", "else", "do") or is_first

    def _statement(self, i):
        source = self.source
        if not self._begins(i) or source.word(i) in NO_CALL | {"{"} or self._in_head(i):
            return
        last = _statement_end(source, i)
        outer = list(source.outermost(i, last))
        words = [source.word(k) for k in outer]
        if not words or source.word(last) != ";" or set(words) & TEXTS or _declares(source, outer):
            return
        if words[0] in ("break", "continue") or "(" in words or set(words) & (ASSIGNS | {"++", "--"}):
            self._add("statement", i, i, last, "", True)
        for k in outer:
            if source.word(k) in ("+=", "-=", "*=", "|="):
                self._add("term", k, i, last, self._replaced(i, last, k, "="), True)

    def _in_head(self, i):
        """Whether a semicolon before is that of a `for` or an `if`."""
        return self.source.word(self.source.inside[i]) != "{"

    def _early_return(self, i):
        """`if (c) return x;` with something behind it: without that, a function would end without a value."""
        source = self.source
        if source.word(i) not in ("return", "fail") or source.word(i - 1) != ")":
            return
        head = source.partner.get(i - 1, 1) - 1
        last = _statement_end(source, i)
        is_plain = source.word(head) == "if" and source.word(head - 1) != "else"
        if is_plain and source.word(last + 1) not in ("else", "}"):
            self._add("statement", i, i, last, "", True)


def _declares(source, outer):
    """Whether two names stand side by side, as in `Type name`."""
    for a, b in zip(outer, outer[1:]):
        if source.word(a) in ASSIGNS or source.word(a) in ("(", "{"):
            return False
        if source.tokens[a].kind == "name" and source.tokens[b].kind == "name":
            return True
        if source.tokens[b].kind == "name" and source.word(a) in ("&", "*", ">") and a > outer[0]:
            return True
    return False


def _other_numbers(text):
    """What a constant may become."""
    if text in ("true", "false"):
        return ["false" if text == "true" else "true"]
    found = re.fullmatch(r"([0-9][0-9']*)([uUlLzZ]*)", text)
    if found and (len(found[1]) == 1 or found[1][0] != "0"):
        value = int(found[1].replace("'", ""))
        return [f"{other}{found[2]}" for other in ((1,) if value == 0 else (value - 1, value + 1))]
    if re.fullmatch(r"[0-9]*\.[0-9]*", text):
        value = float(text)
        return [f"{value * 1.1:.6g}" if value * 1.1 != int(value * 1.1) else f"{value * 1.1:.1f}"] if value else ["0.1"]
    return []


def draw(sources, counts, seed):
    """Per module of `counts` an endless-enough list of mutations in the order of the draw: a line at random of all that
    have any, of each once, and one of its kinds. `sources` names texts by their paths, whose first folder is the
    module."""
    dice = random.Random(seed)
    drawn = {}
    for module in counts:
        lines = {}
        for file in sorted(file for file in sources if file.split("/")[0] == module):
            for one in Sites(file, sources[file]).found:
                lines.setdefault((file, one.line), {}).setdefault(one.kind, []).append(one)
        places = sorted(lines)
        dice.shuffle(places)
        drawn[module] = [dice.choice(of_line[dice.choice(sorted(of_line))]) for of_line in map(lines.get, places)]
    return drawn


def overlaps(one, others):
    return any(one.file == other.file and one.start < other.end and other.start < one.end for other in others)


def rewritten(text, numbered):
    """The source with a choice in place of each mutation; `numbered` are pairs (number, mutation) of this text."""
    for number, one in sorted(numbered, key=lambda pair: -pair[1].start):
        on = f"::mutants::on({number})"
        if not one.is_statement:
            choice = f"({on} ? ({one.after}) : ({one.before}))"
            if one.kind == "condition":
                choice = f"({on} != static_cast<bool>({one.before}))"
        else:
            choice = f"if ({on}) {{ {one.after} }} else {{ {one.before} }}"
            choice = f"{{ {choice} }}" if one.after else f"{{ if (!{on}) {{ {one.before} }} }}"
        text = text[:one.start] + choice + text[one.end:]
    return '#include "pipeweaver/mutants.hpp"\n' + text
