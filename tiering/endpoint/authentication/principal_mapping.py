"""Rules that make a user's name of a certificate's subject (`ssl.principal.mapping.rules`, Kafka's SslPrincipalMapper).

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,RULE:^CN=([^,]+).*$/$1/L,DEFAULT

The first rule whose pattern is that of the whole subject makes the name: $1 is its first group, and L or U makes letters small
or large. DEFAULT is the subject itself.
"""

import re
from dataclasses import dataclass
from typing import Final

from local_log.errors import Invalid
from tiering.endpoint.authentication.sasl_server import SaslFailed

_RULE: Final = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)")
_REFERENCE: Final = re.compile(r"\\(.)|\$(\d+)")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; DEFAULT without a pattern."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    case: str = ""

    def apply(self, subject: str) -> str | None:
        """The name, None if the rule is for others."""
        if self.pattern is None:
            return subject
        if not self.pattern.fullmatch(subject):
            return None
        name = self.pattern.sub(self._replaced, subject)
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name

    def _replaced(self, match: re.Match[str]) -> str:
        def referred(reference: re.Match[str]) -> str:
            if reference[1] is not None:
                return reference[1]
            digits, rest = reference[2], ""
            while len(digits) > 1 and int(digits) > match.re.groups:
                digits, rest = digits[:-1], digits[-1] + rest
            if int(digits) > match.re.groups:
                return reference[0]
            return (match[int(digits)] or "") + rest

        return _REFERENCE.sub(referred, self.replacement)


@dataclass(frozen=True, slots=True)
class PrincipalMapping:
    """All rules, in order."""

    rules: tuple[Rule, ...] = (Rule(),)

    @classmethod
    def of(cls, text: str) -> "PrincipalMapping":
        """From Kafka's notation. Raises Invalid."""
        rules, pos = list[Rule](), 0
        while pos < len(text.rstrip()):
            found = _RULE.match(text, pos)
            if found is None:
                raise Invalid(f"ssl.principal.mapping.rules: {text[pos:]!r} is neither DEFAULT nor RULE:PATTERN/REPLACEMENT/[LU]")
            try:
                rules.append(Rule() if found[1] else Rule(re.compile(found[2]), found[3], found[4]))
            except re.error as e:
                raise Invalid(f"ssl.principal.mapping.rules: {found[2]!r} is not a regular expression: {e}") from e
            pos = found.end()
        return cls(tuple(rules))

    def name(self, subject: str) -> str:
        """Raises SaslFailed if no rule is for this subject."""
        names = (rule.apply(subject) for rule in self.rules)
        found = next((name for name in names if name is not None), None)
        if found is None:
            raise SaslFailed(f"no rule of ssl.principal.mapping.rules is for the certificate of {subject}")
        return found
