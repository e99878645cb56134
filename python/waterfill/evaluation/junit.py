"""Verdicts as JUnit XML, which CI services read."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from waterfill.evaluation.text import boundaries, deciding, titled
from waterfill.evaluation.verdict import CriterionVerdict, EvaluationDocument


def text(document: EvaluationDocument, differences: Sequence[str] | None = None) -> str:
    """Return the document as JUnit XML, with a test case for each criterion.

    A test fails if the law fails the criterion in some cell; with `differences` from a record, if
    one of them is about the criterion. What is not evaluated is skipped.
    """
    suite = ElementTree.Element("testsuite", name=f"{document.suite}-suite {document.version}")
    failures = skipped = 0
    for one in document.criteria:
        name = f"{one.section} {one.title}"
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"{document.suite}.{document.law}", name=name
        )
        mine = [line for line in differences or () if line.startswith(f"{one.id}: ")]
        if mine or (differences is None and one.verdict in ("fails", "mixed")):
            failures += 1
            failure = ElementTree.SubElement(
                case, "failure", message=mine[0] if mine else one.verdict
            )
            failure.text = "\n".join(_details(one))
        elif one.verdict == "not evaluated":
            skipped += 1
            ElementTree.SubElement(case, "skipped", message=one.reason or "")
    for key, count in (
        ("tests", len(document.criteria)), ("failures", failures), ("errors", 0),
        ("skipped", skipped),
    ):  # fmt: skip
        suite.set(key, str(count))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _details(one: CriterionVerdict) -> list[str]:
    failing = [titled(cell) for cell in one.cells if cell.verdict == "fails"]
    return [one.question, deciding(one), *boundaries(one), f"fails in: {'; '.join(failing)}"]
