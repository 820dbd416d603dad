"""What PyYAML says about a text that is no YAML, as a finding at its line."""

import yaml

from gapless_pipelines.findings import Finding

MAX_DEPTH = 32


class TooDeep(yaml.YAMLError):
    """Nested beyond what any job file needs."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line


def syntax_finding(error: yaml.YAMLError, text: str, file: str) -> Finding:
    """The one finding about `text` that the error is."""
    if isinstance(error, TooDeep):
        what = f"is nested deeper than {MAX_DEPTH} levels"
        return Finding(file, error.line, (), what, "a flatter file")
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        what = f"holds the character U+{error.character:04X}"
        return Finding(file, line, (), what, "printable text")
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        line = error.problem_mark.line + 1
        what = "is not YAML here: " + " ".join(filter(None, (error.context, error.problem)))
        return Finding(file, line, (), what, _syntax_advice(error, text, line))
    return Finding(file, 1, (), f"is not YAML: {error}", "YAML")


def _syntax_advice(error: yaml.MarkedYAMLError, text: str, line: int) -> str:
    written = text.splitlines()[line - 1] if line <= len(text.splitlines()) else ""
    if "\\t" in (error.problem or "") or "\t" in written[: len(written) - len(written.lstrip())]:
        return "spaces for indentation, no tabs"
    if "${" in written and "flow" in (error.context or ""):
        return 'a value with ${...} inside { } or [ ] stands in quotes: "${NAME}"'
    return "check quotes, colons and indentation on this line and above"
