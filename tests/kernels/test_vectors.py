import numpy as np

from bmrm.kernels.products.vectors import blend


def test_all_of_one_vector_is_that_vector_however_large_the_other_is():
    one, other = np.array([-6381.9519953151, 1e300]), np.array([0.008612990540131567, 1e-300])
    np.testing.assert_array_equal(blend(one, other, 1.0), other)
    np.testing.assert_array_equal(blend(one, other, 0.0), one)


def test_shares_near_one_keep_the_digits_of_the_smaller_vector():
    share = 1.0 - 2.0**-50
    assert blend(np.array([2.0**40]), np.array([0.1]), share)[0] == 2.0**-10 + share * 0.1
