"""VBench's dimensions by the names that the paper gives them; vbench itself computes them, out of process."""

from curvedray.evaluate.scores import Metric

AESTHETIC = Metric("Aesthetic", "-", "higher", "VBench's aesthetic_quality: LAION's predictor on CLIP L/14, per frame.")
BACKGROUND = Metric("BG Cons.", "-", "higher", "VBench's background_consistency: CLIP B/32 similarity of frames.")
IMAGING = Metric("Img. Qual.", "-", "higher", "VBench's imaging_quality: MUSIQ, 0 to 100, mean over frames.")
OVERALL = Metric(
    "Overall Cons.", "-", "higher", "VBench's overall_consistency: ViCLIP similarity of video and caption."
)
SUBJECT = Metric("Subject Cons.", "-", "higher", "VBench's subject_consistency: DINO similarity of frames.")
STYLE = Metric("Temporal Style", "-", "higher", "VBench's temporal_style, the same computation as Overall Cons.")
FLICKER = Metric(
    "Flicker", "-", "higher", "VBench's temporal_flickering: 1 - mean absolute difference of frames / 255."
)
METRICS = (AESTHETIC, BACKGROUND, IMAGING, OVERALL, SUBJECT, STYLE, FLICKER)
