"""The tables of the page on estimators are complete."""

from bmrm import estimators
from tests.pages import ROOT

PAGE = "docs/estimators.md"


def test_every_class_is_described():
    page = (ROOT / PAGE).read_text()
    for name in estimators.__all__:
        assert f"| `{name}` |" in page
        parameters = set(getattr(estimators, name)().get_params())
        assert {p for p in parameters if f"`{p}`" not in page} <= {"templates"}
