"""A Blender add-on of one file: camera paths out of Blender and into it, fisheye lenses included.

Get it with `curvedray cameras blender FILE.py`, install it in Blender (Edit > Preferences > Add-ons > Install from
Disk), and find it under File > Export and File > Import as "curvedray cameras (.json)". It needs nothing but Blender:
the maths below uses numpy alone, which Blender brings.

Blender's cameras have OpenGL's axes (x right, y up, z back) in a world with z up; ours have OpenCV's (x right, y down,
z forward) in a world with y down. A fisheye goes in as Blender's "Fisheye Lens Polynomial" (Cycles), whose angle is a
polynomial in the distance from the middle of the sensor, and comes out as the nearest lens of the Unified Camera Model.
"""

import importlib
import importlib.util
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

bl_info = {
    "name": "curvedray cameras",
    "description": "Camera paths and lenses as curvedray's JSON",
    "category": "Import-Export",
    "location": "File > Import, File > Export",
    "blender": (3, 6, 0),
    "version": (1, 0, 0),
}

OPENCV_FROM_OPENGL = np.diag([1.0, -1.0, -1.0, 1.0])
Y_DOWN_FROM_Z_UP = np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
CONVENTION = {"pose": "world_from_camera", "axes": "x right, y down, z forward", "pixel_center": 0.5}
SENSOR = 36.0  # millimetres across the width of cameras that we make
SAMPLES = 200


# -- maths, without Blender


def pose_from_blender(matrix_world: Any) -> np.ndarray:
    """Blender's matrix_world, its scale removed -> our world_from_camera."""
    matrix = np.array(matrix_world, dtype=float)
    matrix[:3, :3] /= np.linalg.norm(matrix[:3, :3], axis=0)
    return Y_DOWN_FROM_Z_UP @ matrix @ OPENCV_FROM_OPENGL


def pose_to_blender(world_from_camera: Any) -> np.ndarray:
    return Y_DOWN_FROM_Z_UP.T @ np.array(world_from_camera, dtype=float) @ OPENCV_FROM_OPENGL


def ucm_angle(radius: np.ndarray, focal: float, xi: float) -> np.ndarray:
    """The angle from the axis, in radians, that a UCM lens shows `radius` pixels from its centre; NaN where none is.

    r = f sin(t) / (cos(t) + xi), solved for t.
    """
    m = radius / focal
    with np.errstate(invalid="ignore"):  # beyond the image circle
        root = np.sqrt(1 + (1 - xi * xi) * m * m)
    return np.arctan2(m * (xi + root), root - xi * m * m)


def polynomial_of_ucm(
    focal: float, xi: float, size: tuple[int, int], sensor: float = SENSOR
) -> tuple[list[float], float]:
    """Blender's k0 to k4 of a UCM lens, and the field of view in radians: t = -(k0 + k1 r + ... + k4 r^4), r in mm."""
    pitch = sensor / size[0]
    reach = np.linspace(0, math.hypot(*size) / 2, SAMPLES)
    angles = ucm_angle(reach, focal, xi)
    seen = np.isfinite(angles)
    radius = reach[seen] * pitch
    columns = np.stack([radius**power for power in range(1, 5)], -1)  # no constant: the axis is the axis
    terms = np.linalg.lstsq(columns, angles[seen], rcond=None)[0]
    return [0.0, *(-terms).tolist()], 2 * float(angles[seen].max())


def ucm_of_angles(radius: np.ndarray, angle: np.ndarray) -> tuple[float, float]:
    """Focal length (pixels) and xi of the UCM lens nearest to these angles (radians) at these radii (pixels).

    r (cos t + xi) = f sin t is linear in f and xi.
    """
    columns = np.stack([np.sin(angle), -radius], -1)
    focal, xi = np.linalg.lstsq(columns, radius * np.cos(angle), rcond=None)[0]
    if xi < 1e-9:  # nothing bends the other way: the nearest pinhole
        xi, focal = 0.0, float((radius * np.cos(angle)) @ np.sin(angle) / (np.sin(angle) @ np.sin(angle)))
    return float(focal), float(xi)


def blender_angle(kind: str, settings: dict[str, float]) -> Callable[[np.ndarray], np.ndarray]:
    """Radius on the sensor in millimetres -> angle, of one of Blender's fisheyes."""
    if kind == "FISHEYE_LENS_POLYNOMIAL":
        k = [settings[f"fisheye_polynomial_k{i}"] for i in range(5)]
        return lambda radius: -np.polyval(k[::-1], radius)
    if kind == "FISHEYE_EQUISOLID":
        return lambda radius: 2 * np.arcsin(np.clip(radius / (2 * settings["fisheye_lens"]), -1, 1))
    if kind == "FISHEYE_EQUIDISTANT":
        return lambda radius: radius / (settings["sensor"] / 2) * settings["fisheye_fov"] / 2
    raise ValueError(f"a fisheye (equidistant, equisolid or lens polynomial) is needed, not {kind}")


def fisheye_lens(
    kind: str, settings: dict[str, float], size: tuple[int, int], sensor: float
) -> tuple[float, float, float]:
    """(focal in pixels, xi, largest error in degrees) of one of Blender's fisheyes."""
    if kind == "FISHEYE_EQUIDISTANT" and size[0] != size[1]:
        raise ValueError("an equidistant fisheye is only known on a square image; use the lens polynomial")
    pitch = sensor / size[0]
    radius = np.linspace(1.0, math.hypot(*size) / 2, SAMPLES)
    angle = np.asarray(blender_angle(kind, settings | {"sensor": sensor})(radius * pitch))
    rising = np.concatenate([[True], np.diff(angle) > 0]).cumprod().astype(bool)
    seen = rising & (angle > 0) & (angle <= settings["fisheye_fov"] / 2 + 1e-9)
    focal, xi = ucm_of_angles(radius[seen], angle[seen])
    error = np.nanmax(np.abs(ucm_angle(radius[seen], focal, xi) - angle[seen]))
    return focal, xi, math.degrees(float(error))


def pinhole_focal(lens: float, sensor: tuple[float, float], fit: str, size: tuple[int, int]) -> float:
    """Focal length in pixels of a perspective camera, by the side that Blender fits the sensor to."""
    width, height = size
    if fit == "VERTICAL":
        return lens / sensor[1] * height
    return lens / sensor[0] * (width if fit == "HORIZONTAL" or width >= height else height)


def document(
    poses: list, lenses: list[tuple], size: tuple[int, int], unit: str, fps: float | None, source: str
) -> dict[str, Any]:
    """curvedray's JSON of poses and of (fx, fy, cx, cy, xi) per frame."""
    frames = [
        {"world_from_camera": np.asarray(pose).tolist(), "focal": [fx, fy], "center": [cx, cy], "xi": xi}
        for pose, (fx, fy, cx, cy, xi) in zip(poses, lenses, strict=True)
    ]
    head = {"format": "curvedray-cameras", "version": 1, "convention": CONVENTION, "unit": unit, "fps": fps}
    lens = {"model": "ucm", "size": list(size), "max_angle": math.pi}
    return head | {"lens": lens, "provenance": {"writer": source}, "frames": frames}


# -- Blender


bpy: Any = importlib.import_module("bpy") if importlib.util.find_spec("bpy") else None


def export_path(context: Any, path: str) -> str:
    """Write the active camera over the scene's frames; returns what the user should know."""
    scene, camera = context.scene, context.scene.camera
    if camera is None:
        raise ValueError("the scene has no active camera")
    render = scene.render
    size = (round(render.resolution_x * render.resolution_percentage / 100),
            round(render.resolution_y * render.resolution_percentage / 100))  # fmt: skip
    scale = scene.unit_settings.scale_length if scene.unit_settings.system != "NONE" else 1.0
    current, worst, poses, lenses = scene.frame_current, 0.0, [], []
    for frame in range(scene.frame_start, scene.frame_end + 1):
        scene.frame_set(frame)
        data = camera.evaluated_get(context.evaluated_depsgraph_get()).data
        pose = pose_from_blender(camera.matrix_world)
        pose[:3, 3] *= scale
        lens, error = _lens_of(data, size)
        poses.append(pose)
        lenses.append(lens)
        worst = max(worst, error)
    scene.frame_set(current)
    unit = "metric" if scene.unit_settings.system != "NONE" else "arbitrary"
    fps = render.fps / render.fps_base
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document(poses, lenses, size, unit, fps, f"Blender {bpy.app.version_string}"), file, indent=1)
    return f"{len(poses)} frames" + (f"; the fisheye was fitted to {worst:.3g} degrees" if worst else "")


def _lens_of(data: Any, size: tuple[int, int]) -> tuple[tuple, float]:
    """(fx, fy, cx, cy, xi) of a camera, and the fit's error in degrees."""
    width, height = size
    # Blender shifts by shares of the longer side, and up.
    cx, cy = width / 2 - data.shift_x * max(size), height / 2 + data.shift_y * max(size)
    if data.type == "PERSP":
        focal = pinhole_focal(data.lens, (data.sensor_width, data.sensor_height), data.sensor_fit, size)
        return (focal, focal, cx, cy, 0.0), 0.0
    if data.type != "PANO":
        raise ValueError(f"a perspective or panoramic camera is needed, not {data.type}")
    holder = _panorama(data)
    names = ["fisheye_fov", "fisheye_lens", *(f"fisheye_polynomial_k{i}" for i in range(5))]
    focal, xi, error = fisheye_lens(
        holder.panorama_type, {name: getattr(holder, name) for name in names}, size, data.sensor_width
    )
    return (focal, focal, width / 2, height / 2, xi), error


def _panorama(data: Any) -> Any:
    """Where a camera keeps its fisheye: in Blender 5 itself, before that in its Cycles settings."""
    return data if getattr(data, "panorama_type", None) is not None else data.cycles


def import_path(context: Any, path: str) -> str:
    """Make an animated camera of curvedray's JSON; returns what the user should know."""
    import mathutils  # type: ignore[import-not-found]

    with open(path, encoding="utf-8") as file:
        stored = json.load(file)
    if stored.get("format") != "curvedray-cameras" or stored.get("convention") != CONVENTION:
        raise ValueError("not a curvedray camera file; `curvedray cameras convert` makes one of any other")
    scene, (width, height), frames = context.scene, stored["lens"]["size"], stored["frames"]
    data = bpy.data.cameras.new("curvedray")
    camera = bpy.data.objects.new("curvedray", data)
    scene.collection.objects.link(camera)
    camera.rotation_mode = "QUATERNION"
    data.sensor_fit, data.sensor_width = "HORIZONTAL", SENSOR
    scene.render.resolution_x, scene.render.resolution_y = width, height
    for number, frame in enumerate(frames, scene.frame_start):
        matrix = mathutils.Matrix(pose_to_blender(frame["world_from_camera"]).tolist())
        camera.location, camera.rotation_quaternion, _ = matrix.decompose()
        camera.keyframe_insert("location", frame=number)
        camera.keyframe_insert("rotation_quaternion", frame=number)
        _set_lens(data, frame, (width, height), number)
    scene.frame_end = scene.frame_start + len(frames) - 1
    if stored["fps"]:
        scene.render.fps, scene.render.fps_base = round(stored["fps"]), round(stored["fps"]) / stored["fps"]
    scene.camera = camera
    if data.type == "PANO":
        scene.render.engine = "CYCLES"
        return f"{len(frames)} frames; a fisheye, which only Cycles renders"
    return f"{len(frames)} frames"


def _set_lens(data: Any, frame: dict[str, Any], size: tuple[int, int], number: int) -> None:
    focal, (cx, cy), xi = frame["focal"][0], frame["center"], frame["xi"]
    if xi < 1e-6:
        data.type, data.lens = "PERSP", focal * SENSOR / size[0]
        data.shift_x, data.shift_y = (size[0] / 2 - cx) / max(size), (cy - size[1] / 2) / max(size)
        for name in ("lens", "shift_x", "shift_y"):
            data.keyframe_insert(name, frame=number)
        return
    data.type, holder = "PANO", _panorama(data)
    holder.panorama_type = "FISHEYE_LENS_POLYNOMIAL"
    terms, field = polynomial_of_ucm(focal, xi, size)
    values = {f"fisheye_polynomial_k{i}": term for i, term in enumerate(terms)} | {"fisheye_fov": field}
    for name, value in values.items():
        setattr(holder, name, value)
        data.keyframe_insert(name if holder is data else f"cycles.{name}", frame=number)


if bpy is not None:
    from bpy_extras.io_utils import ExportHelper, ImportHelper  # type: ignore[import-not-found]

    class _Operator(bpy.types.Operator):
        filename_ext = ".json"

        def execute(self, context: Any) -> set[str]:
            try:
                self.report({"INFO"}, self.work(context, self.filepath))
            except (ValueError, KeyError, OSError) as error:
                self.report({"ERROR"}, str(error))
                return {"CANCELLED"}
            return {"FINISHED"}

    class ExportCurvedray(_Operator, ExportHelper):
        """Write the active camera's path and lens"""

        bl_idname, bl_label = "export_scene.curvedray", "Export curvedray cameras"
        work = staticmethod(export_path)

    class ImportCurvedray(_Operator, ImportHelper):
        """Make an animated camera of a curvedray file"""

        bl_idname, bl_label = "import_scene.curvedray", "Import curvedray cameras"
        work = staticmethod(import_path)

    def _export_entry(menu: Any, context: Any) -> None:
        menu.layout.operator(ExportCurvedray.bl_idname, text="curvedray cameras (.json)")

    def _import_entry(menu: Any, context: Any) -> None:
        menu.layout.operator(ImportCurvedray.bl_idname, text="curvedray cameras (.json)")

    def register() -> None:
        for operator in (ExportCurvedray, ImportCurvedray):
            bpy.utils.register_class(operator)
        bpy.types.TOPBAR_MT_file_export.append(_export_entry)
        bpy.types.TOPBAR_MT_file_import.append(_import_entry)

    def unregister() -> None:
        bpy.types.TOPBAR_MT_file_export.remove(_export_entry)
        bpy.types.TOPBAR_MT_file_import.remove(_import_entry)
        for operator in (ExportCurvedray, ImportCurvedray):
            bpy.utils.unregister_class(operator)
