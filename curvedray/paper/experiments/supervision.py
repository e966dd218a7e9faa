"""With and without radial supervision, trained briefly and long."""

from curvedray.paper.experiment import Claim, Experiment, Row
from curvedray.paper.rows import CREPE, UCPE, UNSUPERVISED
from curvedray.paper.run import Table

runner = Table(
    Experiment(
        rows={
            "1K without": Row(UNSUPERVISED, budget="short"),
            "1K with": Row(budget="short"),
            "10K without": Row(UNSUPERVISED),
            "10K with": CREPE,
            "ucpe": UCPE,
        },
        stride_at_wan=1,
        columns=("CamMC", "RotErr", "Gravity", "SSI-L1"),
        baseline="10K without",
        pairs=(("10K with", "10K without"),),
        claims=(
            *(Claim("1K without", "1K with", metric, alike=0.1) for metric in ("CamMC", "RotErr")),
            Claim("1K without", "10K without", "SSI-L1"),
            Claim("10K with", "1K with", "SSI-L1"),
            Claim("ucpe", "10K without", "CamMC"),
        ),
        radii=True,
        judges={"wan": ("vipe", "geocalib", "unik3d")},
        says="The paper: at 1K steps supervision brings no advantage, which is two rows alike, here within a tenth of "
        "the error; at 10K it does, the head without it has drifted (SSI-L1), and falls behind UCPE. At the embedded "
        "scale 1K is half of the full budget: with a tenth of it no row obeys, and all are alike. SSI-L1 is over all "
        "tokens, those of the sky too, of which neither head nor estimator ever learned.",
    )
)
