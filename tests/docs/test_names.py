"""Pages use names of `bmrm` and `bmrm.extend` alone: no block reaches deeper into the package."""

import ast

import pytest

import bmrm
from bmrm import extend
from tests.docs.test_every_block import PAGES, runs
from tests.pages import ROOT, blocks_of

BLOCKS = [block for page in PAGES for block in blocks_of(page) if block.language == "python" and runs(block)]
PUBLIC = {"bmrm": {*bmrm.__all__, "extend"}, "bmrm.extend": set(extend.__all__)}
MOVED = {"LinearRisk", "MarginLoss", "MulticlassLoss", "RegressionLoss", "StructuredRisk", "check_loss", "parameter"}
MOVED |= {"check_regularizer", "check_risk", "register_loss", "register_regularizer", "register_solver", "row"}


def hidden(text):
    """Names that the code uses of modules of ours, and that are not public."""
    found, aliases = [], {}
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [one.name for one in node.names if one.name.split(".")[0] == "bmrm" and one.name not in PUBLIC]
            aliases |= {one.asname or one.name: one.name for one in node.names if one.name in PUBLIC}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "bmrm":
            names = [f"{node.module}.{one.name}" for one in node.names]
            found += [name for name in names if name.rpartition(".")[2] not in PUBLIC.get(node.module, ())]
            aliases |= {one.asname or one.name: "bmrm.extend" for one in node.names if one.name == "extend"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            module = aliases.get(owner, owner)
            if module in PUBLIC and node.attr not in PUBLIC[module]:
                found.append(f"{module}.{node.attr}")
    return found


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_blocks_use_public_names(block):
    assert hidden(block.text) == []


def test_a_name_that_is_not_public_is_noticed():
    assert hidden("import bmrm\nbmrm.fit(); bmrm.extend.row; bmrm.L2(1)") == []
    assert hidden("from bmrm import extend\nextend.register_loss") == []
    assert hidden("import bmrm\nbmrm.problem.Start(w)") == ["bmrm.problem"]
    assert hidden("from bmrm.data.readers.conll import Conll") == ["bmrm.data.readers.conll.Conll"]
    assert hidden("import bmrm.mpi.shared") == ["bmrm.mpi.shared"]
    assert hidden("from bmrm import row") == ["bmrm.row"]


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_no_name_that_has_moved(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [name for name in MOVED if f"bmrm.{name}`" in text or f"bmrm.{name}(" in text] == []


def test_names_of_users_and_of_authors_are_apart_and_old_places_still_give_them():
    assert not set(bmrm.__all__) & set(extend.__all__)
    assert set(bmrm._MOVED) == MOVED <= set(extend.__all__)
    for name in MOVED:
        assert getattr(bmrm, name) is getattr(extend, name)
        assert name not in dir(bmrm)
    for module in (bmrm, extend):
        for name in module.__all__:
            assert getattr(module, name) is not None
    for name in ("Start", "FMeasure"):
        assert name in bmrm.__all__
    for name in ("Risk", "shared_terms", "MarginLoss"):
        assert name in extend.__all__
