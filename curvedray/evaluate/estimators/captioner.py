"""A captioner of the user's own, through transformers: any of its models that put an image to words.

The middle frame of a clip is shown to it.
"""

from collections.abc import Callable
from typing import Any

import torch

from curvedray.data.clips import Footage
from curvedray.extras import needed
from curvedray.inputs import reading
from curvedray.media.canvas import as_image

WORDS = 60  # new tokens at most


def load_captioner(model: str, prompt: str = "") -> Callable[[Footage], str]:
    """From a folder in transformers' layout, or a hub id while online. Only safetensors are read; no code of theirs."""
    needed("transformers")
    from transformers import AutoModelForImageTextToText, AutoProcessor

    fix = "Name a folder or a hub id of an image captioner, such as Salesforce/blip-image-captioning-base."
    with reading(f"captioner {model}", "a model of transformers that puts images to words", fix):
        processor: Any = AutoProcessor.from_pretrained(model, trust_remote_code=False)
        network: Any = AutoModelForImageTextToText.from_pretrained(model, use_safetensors=True, trust_remote_code=False)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network.to(device).eval()

    @torch.no_grad()
    def caption(footage: Footage) -> str:
        picture = as_image(footage.video[len(footage.video) // 2])
        with reading(f"captioner {model}", "a caption"):
            inputs = processor(images=picture, return_tensors="pt", **({"text": prompt} if prompt else {})).to(device)
            tokens = network.generate(**inputs, max_new_tokens=WORDS, do_sample=False)
            text: str = processor.batch_decode(tokens, skip_special_tokens=True)[0]
        return text.removeprefix(prompt).strip()

    return caption
