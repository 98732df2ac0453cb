"""What the papers claim, and the rule that decides about each claim, written before any study was run.

They were written knowing first small reruns made outside this project, so they follow the papers' words, not those.

A claim has parts, each with a rule that a study (a file of `studies/`) applies to its rows. The verdict follows:
*reproduced* if all parts that could be settled hold, *refuted* if none does, else *reproduced in part*.

Words that all rules share:

- *level*: an AUC, MAP, break-even or F1 that is less than LEVEL below the other one's.
- Times are processor seconds, used as ratios of runs of one process only, medians of several repetitions.
- `our data` are the sets beside the checkout. Where the paper's set is another one, only the claim is compared, never a
  number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LEVEL = 0.005
"""A difference of AUC, MAP, break-even or F1 that counts as none."""
MOST = 0.9
"""Share of cells that "all" or "usually" of a paper means, where it names no exception."""
LINEAR = (0.8, 1.2)
"""Slopes of log time against log size that count as linear."""


@dataclass(frozen=True)
class Part:
    """One sentence of a paper, and when it counts as true."""

    says: str
    rule: str


@dataclass(frozen=True)
class Claim:
    """What one table or figure is there to show."""

    paper: str
    where: str
    about: str
    parts: Mapping[str, Part]


KDD = "Teo, Le, Smola, Vishwanathan: A scalable modular convex solver for regularized risk minimization (KDD 2007)"
PROBE = "Smith, Kim, Wilbur: PROBE, Periodic Random Orbiter algorithm for machine learning (AAAI 2012)"
PEGASOS = "Ryu, Choi: Variants of Pegasos (2009)"
F_MEASURE = "F-measure optimization by cost-sensitive hinge and a bundle method with line search (BM-ls-CS)"
THESIS = "Komarek: Logistic regression for data mining and high-dimensional classification (thesis, 2004)"

CLAIMS: dict[str, Claim] = {
    "thesis_cg_updates": Claim(
        THESIS,
        "Tables 5.39 to 5.42, eq. 2.17 to 2.19, appendix B.4.4",
        "Directions of CG-MLE. Training deviances and AUC over folds, the same folds for all formulas; with the"
        " defaults of the thesis (5.40) and with the 16 rows of stability options on the first set (5.39).",
        {
            "quadratic": Part(
                "All direction updates produce the same result for quadratic functions (5.3.3.1, B.4.4).",
                "On a random positive definite quadratic with exact line searches, beta of each formula as printed is"
                " within 1e-6 of Fletcher-Reeves', relatively, in the first ten steps.",
            ),
            "pr": Part(
                "Polak-Ribiere is virtually identical to modified Polak-Ribiere.",
                "On every set AUC is level either way, and the median over folds of the ratio of deviances within 5 %.",
            ),
            "fr": Part(
                "Fletcher-Reeves is a strong performer.",
                "On every set its AUC is level with that of modified Polak-Ribiere.",
            ),
            "hs": Part(
                "Hestenes-Stiefel scores poorly.",
                "The formula of the literature, eq. 2.19 with the sign that agrees on quadratics, is poor on at least"
                " half of the sets. Poor: AUC not level with modified Polak-Ribiere's, or a median ratio of deviances"
                " above 1.05.",
            ),
            "hs_printed": Part(
                "Hestenes-Stiefel scores poorly (the same, for the formula that is printed).",
                "Eq. 2.19 as printed is poor on at least half of the sets. If this holds and the part before does not,"
                " the sign is enough to explain the contradiction with Zhang et al. that the thesis leaves open.",
            ),
            "hs_options": Part(
                "Hestenes-Stiefel has AUC scores too low to be considered, whatever the options (5.39).",
                "With the right sign it is poor in at least 12 of the 16 rows.",
            ),
            "bfgs": Part(
                "BFGS-MLE has AUC similar to CG-MLE's, but its times are not competitive (5.41, 5.42).",
                "L-BFGS (SciPy), stopped at a gradient of 1e-3 per the thesis, is level in AUC on every set and takes"
                " more evaluations of all rows than CG-MLE on at least half of the sets.",
            ),
        },
    ),
    "pegasos_variants": Claim(
        PEGASOS,
        "Figures 1 to 9 and section 3",
        "J by step, medians over seeds, for each k (rows of a step), lambda and number of steps, which the note does"
        " not state: a part holds if it does for some k and lambda at the same number of steps, which is then said.",
        {
            "undo_early": Part(
                "In the beginning the undo method does much better than Pegasos.",
                "At a tenth of the steps the median of J is at most 0.9 times plain Pegasos'.",
            ),
            "undo_late": Part(
                "Close to convergence Pegasos does better than undo.",
                "After the last step the median of J of plain Pegasos is below undo's, for a k and lambda for which the"
                " part before holds.",
            ),
            "two_out_alike": Part(
                "The two-out method is almost identical to Pegasos.",
                "Within 2 % of plain Pegasos' J after the last step, for all k below all rows.",
            ),
            "removed": Part(
                "About 80 rows are removed on average.",
                "Between 40 and 160 rows (of 2,144) in the median.",
            ),
            "four_out": Part(
                "With a flag count of four, zero, one or two rows are removed.",
                "At most two in the median, for a k, lambda and number of steps for which the part before holds.",
            ),
            "probability_alike": Part(
                "The probability method is almost identical to Pegasos.",
                "Within 2 % of plain Pegasos' J after the last step, for all k below all rows.",
            ),
        },
    ),
    "kdd_7": Claim(
        KDD,
        "Figure 7, sections 5.7 and 6",
        "Iterations of the bundle method, hinge loss, to absolute gaps of 1e-1 to 1e-4, at most 1,500, for the 13"
        " lambdas of section 5.3; beside it the same with the line search that the paper does not have.",
        {
            "monotone": Part(
                "The smaller lambda, the more iterations.",
                "From each lambda to the next smaller one iterations to a gap of 1e-3 do not fall by more than 10 %, in"
                " at least nine of ten pairs that both get there.",
            ),
            "few": Part(
                "The solver converges to the optimal solution within 20 to 200 iterations.",
                "At most 200 iterations to a gap of 1e-3 in at least nine of ten cells.",
            ),
            "linear": Part(
                "The rate starts very fast, then slows down and becomes linear.",
                "In more than half of the cells with at least 40 iterations, the logarithm of the gap over the last"
                " half of the iterations is fitted better by a line in the iteration than in its logarithm.",
            ),
        },
    ),
    "kdd_5": Claim(
        KDD,
        "Figure 5, section 5.5",
        "Processor time to a relative gap of 0.01 on chunks of m 2^-k rows, lambda 1e-5 as in the paper, l2 and l1.",
        {
            "l2": Part(
                "The time is essentially linear in the sample size (l2).",
                "The least-squares slope of log time against log rows is between 0.8 and 1.2 on every set.",
            ),
            "l1": Part(
                "These properties are consistent between both choices of regularization (l1).",
                "The same with l1, all chunks having reached the gap in at most 1,000 iterations.",
            ),
            "lambda": Part(
                "Lambda influences the time more than the sample size does.",
                "On every set the times over lambda from 1e-2 to 1e-5 at all rows span a larger factor than those over"
                " chunks of an eighth to all rows.",
            ),
        },
    ),
    "probe_figures": Claim(
        PROBE,
        "Figures 1 to 3",
        "Three classes of news20 against the rest; distances to the limit of PROBE itself, as in the paper, and to the"
        " certified minimiser; break-even on the test rows every tenth step.",
        {
            "monotone": Part(
                "IDEAL and PROBE* come nearer to the limit in every step.",
                "Their distances to PROBE's limit never rise by more than 1e-9, in all classes.",
            ),
            "ideal_nearer": Part(
                "IDEAL is always closer than PROBE*.",
                "At every step up to the end of PROBE, in all classes.",
            ),
            "jumps": Part(
                "PROBE steps away from the limit at times, and J rises periodically.",
                "Its distance rises in at least one class, J at least every 50 steps on average in all.",
            ),
            "faster": Part(
                "PROBE converges more rapidly than the idealised algorithms at times.",
                "It ends nearer to the certified minimiser than both, started with it, in at least one class.",
            ),
            "late": Part(
                "Break-even rises steadily for two of three terms; for one it declines after an early maximum.",
                "The last break-even is level with the largest in at least two classes.",
            ),
        },
    ),
    "probe_3_6": Claim(
        PROBE,
        "Tables 3 and 6, and the sections on performance and alternative losses",
        "Small corpora: farm-ads, rcv1_small, each class of news20; two thirds train, rows of unit length, lambda X/m.",
        {
            "not_inferior": Part(
                "PROBE's MAP and break-even are not inferior to Pegasos' or SVMperf's.",
                "Means over all problems are level with those of the bundle method to a gap of 0.01 (SVMperf's"
                " algorithm) and of Pegasos.",
            ),
            "work": Part(
                "The amount of computation is comparable.",
                "The mean number of PROBE's steps is at most twice the bundle method's iterations (1.5 in the paper).",
            ),
            "dormant": Part(
                "The number of active examples is frequently reduced by up to 80 %.",
                "The share of active rows falls to 0.3 or below in at least half of the problems.",
            ),
            "huber": Part(
                "Modified Huber loss gives equivalent break-even.",
                "Means over all problems are level either way.",
            ),
            "max_ent": Part(
                "The maximum entropy model is consistently inferior.",
                "Its break-even is below the hinge's on at least 9 of 10 problems.",
            ),
            "lbfgs": Part(
                "PROBE is three to four times slower than L-BFGS for maximum entropy.",
                "The median ratio of passes is at least 2, L-BFGS stopped at the J that PROBE reached.",
            ),
        },
    ),
    "probe_4_5": Claim(
        PROBE,
        "Tables 4 and 5",
        "Rare positives: w8a and the rarest classes of covtype; lambda X/1e8.",
        {
            "better": Part(
                "PROBE has a better average MAP and break-even than SVMperf.",
                "Mean MAP of PROBE exceeds that of the certified hinge (gap 1e-3) by LEVEL or more.",
            ),
            "work": Part(
                "PROBE takes fewer iterations than SVMperf on the large corpus (264 against 466).",
                "Its mean number of steps is below that of the bundle method to a gap of 0.01.",
            ),
            "early": Part(
                "(Ours) Where PROBE is better, it is because it stops early.",
                "Its J exceeds the certified one by more than 1 %, and MAP along the steps is at some step within LEVEL"
                " of or above its last, before the last.",
            ),
        },
    ),
    "f_measure": Claim(
        F_MEASURE,
        "Table 3 and figure 2",
        "lambda and cost chosen on validation rows, costs .1 to 1.9; five splits; each class of usps and news20.",
        {
            "order": Part(
                "The line search speeds the method up by more than one order of magnitude.",
                "Iterations without over iterations with it, to the same gap, exceed 10 on half of the problems.",
            ),
            "decrease": Part(
                "With the line search J strictly decreases; without it J fluctuates heavily.",
                "J never rises with it, and rises in at least a tenth of the steps without, on every problem.",
            ),
            "f1": Part(
                "F1 is at least SVMperf's on every set.",
                "The mean F1 of BM-ls-CS over splits is level with that of f_beta's cutting planes on every set.",
            ),
            "not_one": Part(
                "LR-F and the cost-sensitive machines beat one another on different sets.",
                "Each has the larger mean F1 on at least one set.",
            ),
            "liblinear": Part(
                "BM-ls-CS is faster than SVM-CS by LIBLINEAR on all sets but one (news20).",
                "To the same relative accuracy, on all sets but at most one.",
            ),
        },
    ),
    "thesis_stability": Claim(
        THESIS,
        "Tables 5.5 to 5.16",
        "IRLS with 16 rows of options under three epsilons; farm-ads (sparse) and its 100 singular vectors (dense).",
        {
            "ridge": Part(
                "For sparse data rrlambda is helpful.",
                "Alone it is level with no option or better in AUC, and takes fewer CG iterations, at moderate and"
                " tight epsilons.",
            ),
            "window": Part(
                "For sparse data cgwindow and cgdecay are helpful.",
                "Alone they are level with no option or better in AUC, and take fewer CG iterations, at moderate and"
                " tight epsilons.",
            ),
            "irrelevant": Part(
                "modelmin, modelmax and margin matter little where rrlambda is on.",
                "With rrlambda on, the AUC of rows that differ in these alone is level either way.",
            ),
            "dense": Part(
                "Dense data need no stability parameters.",
                "On the dense set no row is above the one without options by LEVEL or more, at any epsilon.",
            ),
            "loose": Part(
                "With loose epsilons the options hardly matter.",
                "The range of AUC over the 16 rows is below LEVEL with loose epsilons, and smaller than with tight.",
            ),
            "decay": Part(
                "cgdecay is unnecessary where cgwindow is on.",
                "cgwindow with and without cgdecay: AUC level either way, CG iterations within 5 %.",
            ),
        },
    ),
    "kdd_3": Claim(
        KDD,
        "Figure 3, section 5.3",
        "Hinge loss, 13 lambdas, to a relative suboptimality of 1e-3; times by lambda with intervals.",
        {
            "libsvm": Part(
                "Our solver significantly outperforms LIBSVM.",
                "At least three times faster (linear kernel) in nine of ten cells of at most 50,000 rows.",
            ),
            "any": Part(
                "It is faster than any competing specialised solver on the problems that it solves.",
                "The plain bundle method is faster than LIBLINEAR in nine of ten cells.",
            ),
        },
    ),
    "kdd_4": Claim(
        KDD,
        "Figure 4, section 5.4",
        "Epsilon-insensitive loss on fried, cpusmall, 2dplanes and MV with features by incomplete Cholesky.",
        {
            "libsvm": Part(
                "Our solver is significantly faster than SVMlight and LIBSVM.",
                "At least three times faster than LIBSVM (linear kernel on the same features) in nine of ten cells.",
            ),
        },
    ),
    "kdd_6": Claim(
        KDD,
        "Figure 6, section 5.6",
        "Hinge on covtype, NDCG on MQ2008, ordinal regression on winequality-white, on 1 and 2 ranks.",
        {
            "law": Part(
                "The time on n nodes is a + b/n, a being that of the master problem.",
                "Measured on two ranks it is within 15 % of a + b/2 from the parts of the run on one, for the hinge.",
            ),
            "ranking": Part(
                "Ranking does not scale as well as the soft margin: queries differ in length.",
                "Time on two ranks over a + b/2 is larger for NDCG than for the hinge.",
            ),
        },
    ),
    "thesis_6": Claim(
        THESIS,
        "Tables 6.1 and 6.2",
        "Ten folds, the thesis' classifiers; sparse sets and their 100 and 10 singular vectors.",
        {
            "auc": Part(
                "LR out-scores the support vector machines in every case.",
                "The best of the three LR classifiers is level with linear and RBF machines in AUC on every set.",
            ),
            "speed": Part(
                "The RBF machine is very slow relative to LR.",
                "LIBSVM's time is at least ten times LR-CGEPS' on every sparse set.",
            ),
            "irls": Part(
                "The modified IRLS is better than CG-MLE.",
                "LR-CGEPS and LR-CGDEVEPS are level with CG-MLE in AUC, and one takes fewer passes, on every set.",
            ),
            "knn": Part(
                "Nearest neighbours beat LR on the compressed sets.",
                "K = 129 exceeds the best LR by LEVEL or more on each of them.",
            ),
            "bayes": Part(
                "Naive Bayes is the fastest and scores poorly.",
                "Least time on every sparse set; AUC below the best LR's by 0.02 or more on each.",
            ),
        },
    ),
    "thesis_6_figures": Claim(
        THESIS,
        "Figures 6.1 to 6.12",
        "The generated families of table 5.2: rows, attributes, sparsity, coupling; ROC curves.",
        {
            "rows": Part(
                "Time of LR is linear in rows.",
                "The slope of log time against log rows is between 0.8 and 1.2 for each LR classifier.",
            ),
            "knn": Part(
                "Nearest neighbours do poorly on data without coupling.",
                "Their AUC is the lowest of all classifiers at every number of rows.",
            ),
            "faster": Part(
                "LR is faster than the linear machine.",
                "LR-CGEPS takes less time than LIBSVM with a linear kernel in nine of ten cells.",
            ),
            "coupling": Part(
                "With coupling LR's time grows at most two-fold, and CG-MLE loses more AUC than IRLS.",
                "Both, from coupling 0 to the largest.",
            ),
            "first": Part(
                "Machines have an edge over LR in the first predictions (figures 6.7 to 6.9).",
                "The linear machine's share of positives at a false positive rate of 0.1 % is larger on most sets.",
            ),
        },
    ),
}
"""By name of the study."""
