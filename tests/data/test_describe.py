"""What a data set is like, what is unusual about it, and its splits and captions beside it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tiny import TinyFootage, footage

from curvedray.data.describe import Described, describe_set, summary
from curvedray.data.folders import FolderFootage, write_folder
from curvedray.data.splits import write_splits
from curvedray.data.webdataset import ShardFootage, pack_footage
from curvedray.errors import InputError
from curvedray.evaluate.caption import caption_folder, colour_name, estimated_caption, open_estimate
from curvedray.media.histogram import histogram
from curvedray.media.image import read_image


def test_a_description_has_pictures_and_counts_what_cannot_be_read(tmp_path):
    found = describe_set(TinyFootage(3, broken=(1,)), tmp_path / "d")
    assert (found.clips, found.readable) == (3, 2)
    assert "rubbish" in dict(found.problems)["clip-1"]
    page = (tmp_path / "d" / "description.md").read_text()
    assert "2 of 3 clips can be read" in page
    for name in ("lens", "motion", "sheet"):
        assert f"{name}.png" in page
        assert read_image(tmp_path / "d" / f"{name}.png").float().std() > 1


def test_a_shard_that_is_gone_is_a_problem_of_the_set(tmp_path):
    write_folder(TinyFootage(2), tmp_path / "clips")
    pack_footage(FolderFootage(tmp_path / "clips"), tmp_path / "shards", 1)
    (tmp_path / "shards" / "000001.tar").unlink()
    found = describe_set(ShardFootage(str(tmp_path / "shards")), tmp_path / "description")
    assert found.clips == 1
    ((name, reason),) = found.problems
    assert (name, "it is not there" in reason) == ("000001.tar", True)
    assert "000001.tar" in (tmp_path / "description" / "description.md").read_text()


def test_the_odd_one_out_is_named_and_nobody_else():
    names = ("hfov", "xi", "rotation", "travel", "frames", "words", "brightness")
    random = np.random.default_rng(0)
    rows = [Described(f"c{i}", dict.fromkeys(names, 1.0) | {"rotation": random.normal(30, 3)}, ()) for i in range(40)]
    assert summary(rows).unusual == ()
    rows[7] = replace(rows[7], numbers=rows[7].numbers | {"rotation": 300.0})
    assert [clip for clip, _ in summary(rows).unusual] == ["c7"]
    assert "turning per clip 300" in summary(rows).unusual[0][1]


def test_a_histograms_bars_stand_where_the_values_are():
    left = histogram([0.0] * 9 + [10.0], "a")
    right = histogram([0.0] + [10.0] * 9, "a")
    ink = [(picture[40:200].float() - 18).clamp_min(0).sum((0, 2)) for picture in (left, right)]
    half = len(ink[0]) // 2
    assert ink[0][:half].sum() > 2 * ink[0][half:].sum()
    assert ink[1][half:].sum() > 2 * ink[1][:half].sum()
    assert histogram([], "nothing").shape == histogram([3.0], "one").shape


def test_a_split_beside_the_data_is_by_source_and_is_read(tmp_path):
    write_folder(TinyFootage(4), tmp_path)
    table = (tmp_path / "metadata.csv").read_text().splitlines()
    both = [f"{line},{'source' if not i else f'film-{i % 2}'}" for i, line in enumerate(table)]
    (tmp_path / "metadata.csv").write_text("\n".join(both) + "\n")
    splits = write_splits(tmp_path, ["film-0", "film-1"], seed=1, val=0.49, test=0.49)
    records = FolderFootage(tmp_path).records
    assert [record.split for record in records] == [splits[record.source] for record in records]
    assert records[0].split == records[2].split
    (tmp_path / "splits.json").write_text(json.dumps({"film-0": "testing"}))
    with pytest.raises(InputError, match="train or val or test"):
        FolderFootage(tmp_path)


def test_captions_are_added_where_there_are_none(tmp_path):
    class Silent(TinyFootage):
        def __getitem__(self, index):
            return replace(super().__getitem__(index), caption="its own" if index == 0 else "")

    write_folder(Silent(3), tmp_path)
    (tmp_path / "clip-2.mp4").write_bytes(b"rubbish")
    made = caption_folder(FolderFootage(tmp_path), open_estimate)
    assert [(one.clip, bool(one.caption)) for one in made] == [("clip-1", True), ("clip-2", False)]
    source = FolderFootage(tmp_path)
    assert source[0].caption == "its own"
    assert source[1].caption.startswith("a ")
    assert len(caption_folder(source, open_estimate)) == 1  # only the one that failed is tried again


def test_the_estimate_names_colours_and_the_move():
    assert [colour_name(*i) for i in [(1, 0, 0), (0, 0, 1), (0.5, 0.5, 0.5), (0, 0, 0), (1, 1, 1), (0, 0.6, 0.1)]] == [
        "red",
        "blue",
        "grey",
        "black",
        "white",
        "green",
    ]
    one = footage(0)
    blue = one.video.clone()
    blue[..., :2], blue[..., 2] = 20, 220
    assert "mostly blue" in estimated_caption(replace(one, video=blue))


@pytest.mark.slow
def test_a_captioner_of_transformers_is_asked(tmp_path):
    """A tiny random BLIP, saved as transformers saves it: what it says is nonsense, and goes through whole."""
    from transformers import BertTokenizer, BlipConfig, BlipForConditionalGeneration, BlipImageProcessor, BlipProcessor

    from curvedray.evaluate.estimators.captioner import load_captioner

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[DEC]", "[ENC]", "a", "red", "ball", "on", "grass"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    ids = {"bos_token_id": 5, "eos_token_id": 3, "sep_token_id": 3, "pad_token_id": 0}
    text = sizes | ids | {"vocab_size": len(words), "encoder_hidden_size": 16}
    config = BlipConfig(text_config=text, vision_config=sizes | {"image_size": 16, "patch_size": 8}, projection_dim=16)
    BlipForConditionalGeneration(config).save_pretrained(tmp_path / "blip")
    tokenizer = BertTokenizer(str(tmp_path / "vocab.txt"))
    BlipProcessor(BlipImageProcessor(size={"height": 16, "width": 16}), tokenizer).save_pretrained(tmp_path / "blip")
    caption = load_captioner(str(tmp_path / "blip"))(footage(0))
    assert caption
    assert set(caption.lower().split()) <= {word.lower() for word in words}
    with pytest.raises(InputError, match="image captioner"):
        load_captioner(str(tmp_path / "nothing"))
