"""What findings.md goes through: the paper's claims and ours, the items that test each, what they say, and doubts.

A reading is of the committed results. It has no numbers: those stand in the tables beside it, which findings.py writes.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A claim, where the paper makes it, the items that test it, and what to doubt."""

    title: str
    paper: str
    items: tuple[str, ...]
    doubt: str = ""
    reading: str = ""  # of the committed results, by us; no numbers, which the table above it has


PAPERS = (
    Finding(
        "Curved rays follow the camera better than rays alone",
        "On PanShot CRePE leads UCPE and ReCamMaster in pose, lens and orientation, through pinholes and bent lenses "
        "(CamMC 19.02 against 20.60 and 54.56 through bent ones, 15.33 against 18.50 and 57.83 through pinholes).",
        ("lenses", "overall", "qualitative"),
        reading="With every adapter, rotations and lenses are clearly nearer to what was asked than with the "
        "backbone alone; CRePE's translation hardly is, and through pinholes its CamMC and TransErr are "
        "about the backbone's. The paper's order does not show: UCPE leads the paper's CRePE in pose and "
        "lens, and in the flow loss; ReCamMaster leads CRePE in pose and is behind it in the flow loss. "
        "UCPE turns queries and values, the paper's CRePE keys alone: with those turned too, CRePE comes "
        "about level with it (*Turning queries and values too*, below).",
        doubt="The embedded model has eight blocks and five latent frames of 8 x 12 tokens: a difference that "
        "needs more of them cannot show there.",
    ),
    Finding(
        "It is the curve that helps, not the samples",
        "Without supervision K = 3 beats K = 2 in pose (CamMC 12.31 against 14.75), K = 5 has the best average "
        "rank, K = 1 is "
        "far behind, and the gain is larger through bent lenses (18.6 against 10.8 %).",
        ("breakpoints", "breakpoints-full", "stratified"),
        reading="A single point (K = 1), which the paper has far behind, has the lowest error of rotation here. "
        "From K = 2 to K = 7 that error falls, though only the ends are told apart; the flow loss prefers "
        "three and more breakpoints to two, and does not fall beyond five. In translation and CamMC more "
        "breakpoints do not help. Whether the gain is larger through bent lenses stays undecided.",
        doubt="Without any training, K is a quadrature error that falls as it should "
        "(docs/images/k_quadrature.png); whether a trained model notices is the question here. Without "
        "supervision a head learns no distances in so short a training (`supervision` below, SSI-L1). That "
        "wide intervals, which K = 1 does not have, are then a burden is a guess.",
    ),
    Finding(
        "The middle blocks are the place for it",
        "Probes read radii best in the middle blocks, and the middle window has the best average rank.",
        ("placement", "probing", "layer-maps"),
        reading="Curved rays in all blocks give worse lenses and up-vectors than in the middle window, as in the "
        "paper; their rotations are not told apart. Of the three windows the middle one is not the best "
        "here. Probes read radii better from block to block, up to the last but one: the middle blocks are ahead of "
        "the first ones, as in the paper, and a little behind the last ones.",
        doubt="Of eight blocks a window is four, and the probes' thirds are two, four and two, so the middle one "
        "shares two with each of the others, which "
        "Wan's do not. After the steps of these rows, rotations are about as wrong as in a video without "
        "motion.",
    ),
    Finding(
        "Distance must enter as a phase",
        "Depth-Concat, the same radii as a feature, falls below UCPE in pose (CamMC 23.21 against 21.87; CRePE 18.15).",
        ("injection",),
        reading="Depth as a feature and UCPE, which has no distances, are level, and both lead the paper's CRePE. "
        "With queries and values turned too, CRePE is level with them in pose and ahead in the flow loss. "
        "So distances bring no gain in pose that could be measured here, in either form, and what holds the "
        "paper's form back is mostly that only keys are turned. Whether distance should be a phase or a "
        "feature is not decided.",
        doubt="The row `crepe, query and value` was trained twice (here and in `query-rotation`), and its lead "
        "over UCPE in the flow loss is larger here than there.",
    ),
    Finding(
        "Supervision steadies long training",
        "At 1K steps supervision brings nothing (CamMC 56.27 with, 52.02 without), at 10K it does (18.15 and "
        "22.19), and the "
        "unsupervised head drifts away from its own video (SSI-L1 0.129 to 0.133).",
        ("supervision",),
        reading="At full length supervision lowers the error of rotation and, by a small margin, CamMC. CRePE is "
        "behind UCPE with it and without it; in the paper it leads with it. At the short length the paper "
        "finds no advantage, and we find one in rotation and in CamMC. A head without supervision learns no "
        "distances at either length (SSI-L1), so it has none to drift from.",
        doubt="The paper's short training is a tenth of its long one, ours a half.",
    ),
    Finding(
        "The teacher does not matter much",
        "UniDepthV2 in UniK3D's place: CamMC 15.41 and 15.23, RotErr 5.72 and 5.89.",
        ("alternate-teacher",),
        reading="No row is told apart from another, and none is shown to be alike within a tenth, so the claim stays "
        "undecided. That holds for the row without supervision too: here nothing depends on the teacher.",
        doubt="Trained on pinhole clips alone, all of these rows turn about as wrong as a video without motion.",
    ),
    Finding(
        "What moves is given wider intervals",
        "Dynamic tokens disagree more with their labels (log-MAE 0.294 against 0.208) and are given 1.51 times "
        "the width.",
        ("dynamic-regions",),
        reading="What moves is given wider intervals, by a smaller ratio than in the paper. Its log-MAE and delta_1 "
        "are worse on average too, but the intervals of both differences hold zero. Labels are exact here, "
        "so bad labels cannot be why intervals are wider.",
    ),
    Finding(
        "The head filters its teacher's jitter",
        "Per-frame log-radial statistics change less than the teacher's and more than a SLAM reference's (0.0084 "
        "< 0.0156 < "
        "0.0375 for the median).",
        ("stability", "denoising"),
        reading="The head changes far less than its teacher in every statistic, and its changes are nearer to the "
        "exact "
        "ones: it filters the jitter, as in the paper. It also changes less than the exact radii, which the paper's "
        "does not, and so does a head that learned from exact radii: heads smooth, whoever teaches them.",
        doubt="A head that answers a constant changes by nothing; its drift would be what the exact radii (the row "
        "`ViPE`) have "
        "as median.",
    ),
    Finding(
        "It transfers to cameras it never saw",
        "Untuned on KITTI-360 and RealCam-Vid, CRePE leads UCPE in every pose metric, on KITTI-360 without "
        "supervision too.",
        ("zero-shot", "kitti-orientation"),
        reading="The opposite order: through lenses that no row was trained on UCPE obeys better than CRePE in every "
        "pose metric, with supervision and without. In pitch, roll and gravity the rows are hardly apart; in the "
        "up-vector UCPE leads.",
        doubt="All lenses here are one family of formulas, and rows are trained on few moves. With queries and values "
        "turned too CRePE was not trained for this.",
    ),
    Finding(
        "A supplied map is obeyed",
        "With Radial MixForcing, seven of eight adherence numbers on DAVIS are the best of six methods, and "
        "temporal scale "
        "jitter is far lower (0.178 against VACE's 0.252).",
        ("adherence", "non-pinhole-control", "davis", "external"),
        reading="In the paper's form, with keys alone turned, a map hardly changes films after this training: the "
        "gain over no map is shown and tiny, and Depth-Concat, the same map as a feature, is far better. "
        "The embedded model, whose maps are obeyed ([its page](embedded.md)), has another adapter: queries "
        "and values turned, the interval a feature too, and longer training. Which of these it takes is "
        "not known yet: one change at a time stands in [rows](../experiments/results/rows/table.md), as far as it was "
        "run.",
        doubt="At this scale an adapter has 800 steps to learn what a map means.",
    ),
    Finding(
        "The injected width hardly matters",
        "Over a factor of 20 in sigma_T, CamMC changes by 3.9 %.",
        ("teacher-width",),
        reading="CamMC hardly changes with the width.",
        doubt="In this form the map hardly changes films at all (`adherence`, above), so its width cannot change "
        "them much either: these verdicts say little.",
    ),
)
OURS = (
    Finding(
        "A path behind the camera must not jump",
        "The paper's bounded coordinate changes sign where beta, the denominator of the lens's projection, is "
        "negative. Ours "
        "does not.",
        ("behind-camera",),
        reading="Without the jump a sum over few segments is far nearer to the integral.",
    ),
    Finding(
        "How an interval is bounded decides what is learned",
        "The paper bounds the predicted interval to [-3, 3], on which both ends lie when training begins, and does "
        "not say how. A "
        "plain clamp leaves some ends no gradient to return by, one that passes all gradients drives others away.",
        ("clamp-gradient",),
        reading="A plain clamp leaves some ends without a gradient to return by; one that passes all gradients lets "
        "ends run away. A bound that passes only the gradients that lead back has the lowest loss of the "
        "three.",
    ),
    Finding(
        "The radial loss has spikes",
        "The loss divides by s, the spread of a token's interval, whose floor in the paper is 1e-3. A spike is a step "
        "whose "
        "gradient is over ten times the median.",
        ("loss-spikes",),
        reading="With the larger floor the largest gradient is a fraction of that with the paper's.",
        doubt="What was seen by hand while the embedded model was trained is in the LOG of 2026-11-16. Both rows "
        "have ten times the paper's weight of this loss.",
    ),
    Finding(
        "Turning queries and values too",
        "The paper turns keys alone, so a query does not know its own pixel.",
        ("query-rotation",),
        reading="Turned queries lower the error of rotation, CamMC and the flow loss, and turned values keep that; "
        "CRePE is then about level with UCPE. In this training fewer words were read right with turned "
        "queries. With keys alone turned, two breakpoints joined by one segment (`endpoint`) and five are "
        "not told apart.",
        doubt="One seed. The embedded model that is shipped turns queries and values, and takes maps of "
        "distances, which UCPE cannot.",
    ),
    Finding(
        "Guidance towards the camera, for free",
        "The paper guides towards the text alone. With the adapter off the network is the backbone, so the camera "
        "can be "
        "guided towards without training for it.",
        ("camera-guidance",),
        reading="From 1 to 3 the field of view and the words are obeyed far better, and films are nearer to real "
        "clips in distribution; rotation and CamMC do not change measurably.",
        doubt="At this scale the same guidance also leaves out the text, so the words' part of it is text guidance.",
    ),
)
