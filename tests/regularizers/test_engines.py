import json
import subprocess
import sys

import numpy as np
import pytest

from bmrm.masters.cvxopt import CvxoptElastic, CvxoptLP, CvxoptQP
from bmrm.masters.elastic_newton import ElasticQP
from bmrm.masters.l1_simplex import SimplexLP
from bmrm.masters.l2_active_set import SimplexQP
from bmrm.masters.l2_line_search import LineSearchQP
from bmrm.problem import InputError
from bmrm.regularizers import REGULARIZERS
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from tests.masters.epigraph import store


@pytest.mark.parametrize(
    ("regularizer", "master"),
    [
        (L2(0.1), SimplexQP),
        (L2(0.1, engine="cvxopt"), CvxoptQP),
        (L2(0.1, engine="line_search"), LineSearchQP),
        (L1(0.1), SimplexLP),
        (L1(0.1, engine="cvxopt"), CvxoptLP),
        (ElasticNet(0.1), ElasticQP),
        (ElasticNet(0.1, engine="cvxopt"), CvxoptElastic),
    ],
)
def test_the_engine_named_is_the_one_used(regularizer, master):
    assert type(regularizer.master(store(2))) is master


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lambda": 0.0}, r"lambda is 0.0, expected a number > 0"),
        ({"lambda": -1}, r"lambda is -1, expected a number > 0"),
        ({"lambda": float("nan")}, r"lambda is nan"),
        ({"lambda": 1.0, "engine": "highs"}, r"engine is 'highs', expected one of"),
        ({"lamda": 1.0}, r"no option 'lamda' \(did you mean 'lambda'\?\)"),
        ({}, r"lam"),
    ],
)
@pytest.mark.parametrize("name", ["l1", "l2", "elastic_net"])
def test_wrong_options_name_the_field(name, options, message):
    with pytest.raises(InputError, match=message):
        REGULARIZERS.make(name, options)


@pytest.mark.parametrize("ratio", [0.0, 1.0, -0.5, 2, float("nan")])
def test_shares_at_the_ends_belong_to_other_regularizers(ratio):
    with pytest.raises(InputError, match=r"l1_ratio is .*, expected a number > 0 and < 1"):
        REGULARIZERS.make("elastic_net", {"lambda": 1.0, "l1_ratio": ratio})


def test_values_by_hand():
    w, v = np.array([3.0, 0.0, -4.0]), np.array([0.5, -1.0, 0.25])
    assert L2(0.1).value(w) == pytest.approx(0.05 * 25)
    assert L1(0.1).value(w) == pytest.approx(0.7)
    np.testing.assert_allclose(L1(0.1).subgradient(w), [0.1, 0.0, -0.1])
    assert L2(0.1).conjugate(v) == pytest.approx(5 * 1.3125)
    assert L1(2.0).conjugate(v) == 0.0
    assert L1(0.5).conjugate(v) == np.inf
    assert L1(0.5).feasible(v) == 0.5
    np.testing.assert_allclose(L2(0.5).prox(w, 2.0), w / 2)
    np.testing.assert_allclose(L1(0.5).prox(w, 7.0), [0.0, 0.0, -0.5])


def test_feasible_to_the_last_bit():
    rng = np.random.default_rng(0)
    for _ in range(3000):
        lam, v = float(rng.lognormal(sigma=5)), rng.normal(size=3) * rng.lognormal(sigma=5)
        regularizer = L1(lam)
        assert np.abs(regularizer.feasible(v) * v).max() <= lam


def test_regularizers_load_no_solver_library():
    """Ranks that only compute make regularizers too."""
    code = (
        "import sys, json; from bmrm.regularizers import REGULARIZERS; REGULARIZERS.all();"
        "print(json.dumps([m for m in ('cvxopt', 'scipy', 'sklearn') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
