"""The laws that losses, risks and regularizers must keep, as functions that anybody can call.

`check_loss`, `check_regularizer` and `check_risk` try all of them and return a `Report`; the conformance tests of the
package run the same laws. `sample` has the few milliseconds of them that `bmrm.fit` and `bmrm.minimize` spend at the
start on what is not the package's own.
"""
