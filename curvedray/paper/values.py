"""The paper's own numbers, table by table, as printed. Rows are "subset | setting" where a table has subsets."""

Row = tuple[float, ...]
Values = tuple[tuple[str, ...], dict[str, Row]]  # columns, and a row of numbers per setting

LENSES: Values = (
    ("CamMC", "CS-I", "CS-T", "k1", "k2", "Gravity", "Aesthetic", "BG Cons."),
    {
        "non-pinhole | recammaster": (54.56, 98.69, 24.60, 0.186, 0.154, 11.19, 0.5596, 0.9484),
        "non-pinhole | ucpe": (20.60, 98.80, 24.78, 0.183, 0.154, 7.08, 0.5616, 0.9537),
        "non-pinhole | crepe": (19.02, 98.81, 24.80, 0.157, 0.116, 6.27, 0.5639, 0.9542),
        "pinhole | recammaster": (57.83, 98.65, 25.58, 0.179, 0.152, 10.98, 0.5605, 0.9441),
        "pinhole | ucpe": (18.50, 98.59, 25.86, 0.175, 0.151, 7.10, 0.5619, 0.9457),
        "pinhole | crepe": (15.33, 98.65, 25.93, 0.153, 0.113, 6.13, 0.5620, 0.9471),
    },
)
PLACEMENT: Values = (
    ("Avg. Rank", "RotErr", "CS-I", "CS-T", "FID", "FVD", "k1", "k2", "Pitch", "Up"),
    {
        "all": (3.06, 4.877, 99.27, 25.70, 136.8, 1457, 0.1610, 0.09002, 6.874, 6.918),
        "first 10": (2.12, 5.142, 99.16, 25.78, 133.9, 1438, 0.1679, 0.1113, 6.732, 6.902),
        "middle 10": (2.00, 4.649, 99.30, 25.76, 136.6, 1491, 0.1417, 0.08034, 6.612, 6.712),
        "last 10": (2.82, 4.843, 99.21, 25.68, 130.3, 1506, 0.1574, 0.08684, 6.982, 6.921),
    },
)
BREAKPOINTS: Values = (
    ("Avg. Rank", "CamMC", "RotErr", "Gravity", "CS-T", "FID"),
    {
        "K=1": (4.53, 17.64, 6.73, 18.22, 20.57, 242.7),
        "K=2": (3.27, 14.75, 5.65, 10.46, 25.75, 135.3),
        "K=3": (2.94, 12.31, 4.43, 9.90, 25.76, 139.1),
        "K=5": (1.71, 13.45, 4.65, 9.69, 25.76, 136.6),
        "K=7": (2.56, 14.23, 4.70, 9.80, 25.70, 135.5),
    },
)
INJECTION: Values = (
    ("CamMC", "RotErr", "TransErr", "FVD"),
    {
        "ucpe": (21.87, 6.66, 17.54, 463.5),
        "depth_concat": (23.21, 7.48, 18.11, 473.0),
        "crepe": (18.15, 6.33, 13.78, 465.3),
    },
)
SUPERVISION: Values = (
    ("CamMC", "RotErr", "Gravity", "SSI-L1"),
    {
        "1K without": (52.02, 18.00, 9.69, 0.129),
        "1K with": (56.27, 18.21, 10.04, 0.117),
        "10K without": (22.19, 8.11, 7.57, 0.133),
        "10K with": (18.15, 6.33, 6.24, 0.087),
    },
)
ZERO_SHOT: Values = (
    ("CamMC", "RotErr", "TransErr", "Overall Cons."),
    {
        "KITTI-360 | ucpe": (22.32, 16.20, 9.34, 0.2097),
        "KITTI-360 | crepe, no supervision": (18.18, 14.01, 5.15, 0.2198),
        "KITTI-360 | crepe": (17.01, 12.70, 5.59, 0.2137),
        "RealCam-Vid | ucpe": (12.17, 7.02, 7.00, 0.1894),
        "RealCam-Vid | crepe, no supervision": (12.31, 6.68, 7.22, 0.2146),
        "RealCam-Vid | crepe": (9.55, 5.79, 4.89, 0.2148),
    },
)
ADHERENCE: Values = (
    (
        "SILog (pixel)", "SILog (token)", "AbsRel (pixel)", "AbsRel (token)",
        "delta_1 (pixel)", "delta_1 (token)", "Scale Jitter (pixel)", "Scale Jitter (token)",
    ),
    {
        "ControlVideo": (0.3952, 0.3842, 0.4018, 0.3873, 0.5465, 0.5486, 0.2739, 0.2751),
        "Ctrl-Adapter": (0.4942, 0.4854, 0.6305, 0.6150, 0.4437, 0.4476, 0.4013, 0.4023),
        "Make-Your-Video": (0.5942, 0.5892, 0.8540, 0.8426, 0.3140, 0.3182, 0.5087, 0.5089),
        "OmniVDiff": (0.3764, 0.3701, 0.3902, 0.3842, 0.5096, 0.5133, 0.3184, 0.3181),
        "VACE": (0.2982, 0.2877, 0.3016, 0.2929, 0.6220, 0.6259, 0.2518, 0.2521),
        "crepe-mix (UniDepthV2)": (0.3218, 0.3059, 0.3307, 0.3161, 0.6348, 0.6386, 0.2174, 0.2164),
        "crepe-mix": (0.2990, 0.2834, 0.2719, 0.2578, 0.6400, 0.6439, 0.1781, 0.1783),
    },
)  # fmt: skip
OVERALL: Values = (
    (
        "CamMC", "RotErr", "TransErr", "k1", "k2", "Pitch", "Roll", "Gravity", "Lat.", "Up", "CS-I", "CS-T", "FID",
        "FVD", "FVD-C", "IS", "IS Std.", "Aesthetic", "BG Cons.", "Img. Qual.", "Overall Cons.", "Subject Cons.",
        "Temporal Style",
    ),
    {
        "recammaster": (
            55.42, 16.99, 45.98, 0.184, 0.153, 8.08, 6.30, 11.13, 8.58, 7.40, 98.680, 24.855, 61.15, 551.75,
            504.73, 10.04, 0.288, 0.5599, 0.9473, 74.79, 0.2142, 0.9467, 0.2142,
        ),
        "ucpe": (
            21.87, 6.66, 17.54, 0.181, 0.153, 4.84, 4.47, 7.09, 6.13, 6.09, 98.745, 25.060, 58.71, 463.47,
            440.40, 11.48, 0.230, 0.5617, 0.9516, 74.89, 0.2157, 0.9427, 0.2157,
        ),
        "crepe": (
            18.15, 6.33, 13.78, 0.156, 0.115, 4.57, 3.61, 6.24, 6.02, 5.88, 98.772, 25.096, 58.08, 465.33,
            444.92, 11.43, 0.237, 0.5634, 0.9524, 75.48, 0.2163, 0.9425, 0.2163,
        ),
    },
)  # fmt: skip
BREAKPOINTS_FULL: Values = (
    (
        "Avg. Rank", "CamMC", "RotErr", "TransErr", "CS-I", "CS-T", "LPIPS", "PSNR", "SSIM", "FID", "FVD", "FVD-C",
        "IS", "IS Std.", "k1", "k2", "Pitch", "Roll", "Gravity", "Lat.", "Up",
    ),
    {
        "K=2": (
            2.55, 14.75, 5.648, 11.09, 99.300, 25.750, 0.720, 8.848, 0.262, 135.34, 1563, 1589, 9.55,
            0.351, 0.1212, 0.0789, 7.333, 5.818, 10.458, 8.684, 6.949,
        ),
        "K=5": (
            1.35, 13.45, 4.649, 10.55, 99.301, 25.762, 0.719, 8.886, 0.264, 136.61, 1491, 1465, 10.43,
            0.570, 0.1417, 0.0803, 6.612, 5.598, 9.688, 8.455, 6.712,
        ),
        "K=7": (
            2.10, 14.23, 4.702, 11.21, 99.265, 25.696, 0.720, 8.868, 0.263, 135.46, 1550, 1502, 9.98,
            0.308, 0.1396, 0.0779, 6.756, 5.462, 9.801, 8.588, 6.757,
        ),
    },
)  # fmt: skip
STRATIFIED: Values = (
    ("CamMC", "RotErr", "TransErr"),
    {
        "pinhole | K=2": (14.7457, 5.2380, 11.3287),
        "pinhole | K=3": (13.1519, 5.0362, 9.8322),
        "pinhole | K=5": (14.7137, 4.9312, 11.7906),
        "non-pinhole | K=2": (14.7555, 5.7914, 11.0002),
        "non-pinhole | K=3": (12.0174, 4.2134, 9.5238),
        "non-pinhole | K=5": (13.0098, 4.5505, 10.1079),
    },
)
STABILITY: Values = (
    ("median", "q1", "q3", "iqr"),
    {
        "crepe": (0.0156, 0.0269, 0.0181, 0.0234),
        "UniK3D": (0.0375, 0.0398, 0.0305, 0.0306),
        "ViPE": (0.0084, 0.0080, 0.0091, 0.0114),
    },
)
TEACHER_WIDTH: Values = (
    ("CamMC", "k1", "k2", "FVD", "CS-T"),
    {
        "sigma 0.05": (20.39, 0.148, 0.110, 1104, 25.73),
        "sigma 0.10": (21.02, 0.148, 0.101, 1062, 25.80),
        "sigma 0.30": (21.18, 0.116, 0.070, 1079, 25.81),
        "sigma 1.00": (21.14, 0.163, 0.104, 1394, 25.96),
    },
)
ALTERNATE_TEACHER: Values = (
    ("CamMC", "RotErr", "CS-T"),
    {"UniDepthV2": (15.41, 5.72, 25.94), "UniK3D": (15.23, 5.89, 25.80)},
)
DYNAMIC_REGIONS: Values = (
    ("log-MAE", "delta_1", "width"),
    {"dynamic": (0.294, 0.381, 1.180), "static": (0.208, 0.533, 0.779)},
)
NON_PINHOLE_CONTROL: Values = (
    ("AbsRel (pixel)", "delta_1 (pixel)", "Scale Jitter (pixel)"),
    {"crepe-mix": (0.550, 0.381, 0.088), "VACE": (0.833, 0.371, 0.095), "OmniVDiff": (0.929, 0.097, 0.233)},
)
KITTI_ORIENTATION: Values = (
    ("Pitch", "Roll", "Gravity", "Up"),
    {"ucpe": (1.777, 2.076, 3.060, 3.016), "crepe": (1.783, 1.668, 2.688, 2.654)},
)
PROPERTIES = (
    ("UCPE", "RayRoPE-style", "CRePE"),
    {
        "Non-pinhole (UCM) projection": ("yes", "no", "yes"),
        "Phase that follows a position along the ray": ("no", "yes", "yes"),
        "Integration along the curved projected path": ("-", "no", "yes"),
        "Radii held to a pseudo ground truth": ("-", "no", "yes"),
        "One interface for camera and distances": ("no", "no", "yes"),
    },
)
