"""Laws of pictures on their way in: any file becomes the same small array, or is refused by name."""

import io
import json
import random
import struct
import zipfile
import zlib

import numpy as np
import pytest
import torch
from PIL import Image

from regard.config.loading import from_mapping
from regard.config.media_corpora import ImageFiles
from regard.data.corpus import read
from regard.data.image_files import check_captions
from regard.data.picture_store import PictureStore
from regard.data.pictures import MOST_PIXELS, as_floats, in_memory, list_pictures, read_picture
from regard.data.scenes import scenes
from regard.foundation.errors import RegardError, UsageError
from regard.tasks.preparation import prepare

WRONG = ({"image": "p0.png"}, {"image": 1, "caption": "a"}, {"image": "p0.png", "caption": []})
RED, WHITE = (214, 48, 49), (255, 255, 255)


def halves(wide=20, high=10):
    """A picture whose left half is red and whose right half is white."""
    made = Image.new("RGB", (wide, high), WHITE)
    made.paste(RED, (0, 0, wide // 2, high))
    return made


def folder(place, count=12):
    """A folder of pictures, each of a colour of its own."""
    place.mkdir()
    names = [f"p{number}.png" for number in range(count)]
    for number, name in enumerate(names):
        Image.new("RGB", (6 + number, 9), (20 * number, 255 - 20 * number, 100)).save(place / name)
    return names


def captions_of(names):
    return [(name, f"colour {number} {word}") for number, name in enumerate(names) for word in ("here", "there")]


def written(path, pairs):
    path.write_text("".join(f"{name}\t{caption}\n" for name, caption in pairs))
    return str(path)


def header_of(wide, high):
    """A PNG that claims to be so large, and has next to nothing in it."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    start = chunk(b"IHDR", struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + start + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")


class TestFiles:
    @pytest.mark.parametrize("ending", ["png", "bmp", "gif", "webp", "jpg"])
    def test_whatever_its_format_a_picture_is_the_same(self, ending, tmp_path):
        path = tmp_path / f"a.{ending}"
        halves().save(path, **({"lossless": True} if ending == "webp" else {}))
        found = read_picture(str(path), 8)
        assert found.shape == (3, 8, 8) and found.dtype == np.uint8
        tolerance = 40 if ending in ("jpg", "gif") else 0
        assert np.abs(found[:, :, :3].astype(int) - np.array(RED)[:, None, None]).max() <= tolerance
        assert np.abs(found[:, :, 5:].astype(int) - 255).max() <= tolerance

    def test_whatever_its_mode_a_picture_stands_on_white(self, tmp_path):
        clear = Image.new("RGBA", (10, 10), (0, 0, 0, 0))
        clear.paste((*RED, 255), (0, 0, 5, 10))
        grey = Image.fromarray(np.full((10, 10), 65535, dtype=np.uint16))
        for name, made in (("clear", clear), ("palette", clear.convert("P")), ("grey", grey)):
            made.save(tmp_path / f"{name}.png")
            assert read_picture(str(tmp_path / f"{name}.png"), 10)[:, :, 9].min() == 255, name

    def test_a_picture_stands_upright_as_its_camera_says(self, tmp_path):
        told = Image.Exif()
        told[0x0112] = 6  # to be turned to the right
        halves().save(tmp_path / "a.png", exif=told)
        found = read_picture(str(tmp_path / "a.png"), 8)
        assert found[1, :3].max() < 100 and found[1, 5:].min() == 255  # red is above

    def test_pixels_go_from_minus_one_to_one(self):
        found = as_floats(np.array([0, 255], dtype=np.uint8))
        torch.testing.assert_close(found, torch.tensor([-1.0, 1.0]))

    @pytest.mark.parametrize("content", [b"", b"not a picture", b"\x89PNG\r\n\x1a\nrest", header_of(9, 9)])
    def test_a_file_that_cannot_be_read_is_named(self, content, tmp_path):
        (tmp_path / "broken.png").write_bytes(content)
        with pytest.raises(RegardError, match=r"broken\.png"):
            read_picture(str(tmp_path / "broken.png"), 8)

    def test_a_file_that_is_cut_off_is_named(self, tmp_path):
        content = io.BytesIO()
        Image.fromarray(np.random.default_rng(1).integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(content, "PNG")
        (tmp_path / "cut.png").write_bytes(content.getvalue()[:3000])
        with pytest.raises(RegardError, match=r"cut\.png cannot be read as a picture"):
            read_picture(str(tmp_path / "cut.png"), 8)

    @pytest.mark.parametrize("side", [9_000, 12_000, 60_000, 2**31 - 1])
    def test_nothing_beyond_the_limit_is_decoded_and_the_limit_is_told(self, side, tmp_path, monkeypatch):
        assert side**2 > MOST_PIXELS
        (tmp_path / "bomb.png").write_bytes(header_of(side, side))

        def decoded(*_):
            raise AssertionError("it was decoded")

        monkeypatch.setattr(Image.Image, "load", decoded)
        monkeypatch.setattr("PIL.ImageFile.ImageFile.load", decoded)
        with pytest.raises(RegardError, match=rf"bomb\.png.* pixels, but an image may have at most {MOST_PIXELS:,}"):
            read_picture(str(tmp_path / "bomb.png"), 8)

    def test_formats_that_could_run_something_are_refused(self, tmp_path):
        (tmp_path / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\nshowpage\n")
        with pytest.raises(RegardError, match=r"a\.png is not an image in a format that can be read"):
            read_picture(str(tmp_path / "a.png"), 8)

    def test_a_zip_file_is_a_folder(self, tmp_path):
        names = folder(tmp_path / "photos")
        with zipfile.ZipFile(tmp_path / "photos.zip", "w") as files:
            for name in names:
                files.write(tmp_path / "photos" / name, name)
        assert list_pictures(str(tmp_path / "photos.zip")) == list_pictures(str(tmp_path / "photos")) == sorted(names)
        one, other = (read_picture(f"{tmp_path / place}/p3.png", 8) for place in ("photos", "photos.zip"))
        np.testing.assert_array_equal(one, other)
        with pytest.raises(RegardError, match="no such picture"):
            read_picture(f"{tmp_path}/photos.zip/none.png", 8)

    def test_a_folder_is_no_picture(self, tmp_path):
        with pytest.raises(RegardError, match=r"is a directory\. Give the path of a picture\."):
            read_picture(str(tmp_path), 8)
        with pytest.raises(RegardError, match=r"none does not exist\. Set data\.\*\.images to the folder"):
            list_pictures(str(tmp_path / "none"))

    def test_a_zip_file_that_does_not_unpack_is_told(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "photos.zip", "w", zipfile.ZIP_DEFLATED) as files:
            files.writestr("p.png", bytes(range(256)) * 40)
        whole = (tmp_path / "photos.zip").read_bytes()
        (tmp_path / "photos.zip").write_bytes(whole[:40] + b"\xff" * 60 + whole[100:])
        with pytest.raises(RegardError, match="zip file is damaged"):
            read_picture(f"{tmp_path}/photos.zip/p.png", 8)

    def test_pictures_are_decoded_once_and_kept(self, tmp_path):
        names = [str(tmp_path / "photos" / name) for name in folder(tmp_path / "photos")]
        store = PictureStore.build(tmp_path / "store", [*names, *names], 8)
        assert len(store) == len(names) and isinstance(store.pixels, np.memmap)
        again = PictureStore(tmp_path / "store")
        for name in names:
            np.testing.assert_array_equal(again[[again.numbers[name]]][0], read_picture(name, 8))

    def test_a_damaged_store_says_how_to_mend_it(self, tmp_path):
        store = PictureStore.build(tmp_path / "store", [next(scenes(1, 0)).name], 8)
        (store.directory / "pixels.uint8").write_bytes(b"few")
        with pytest.raises(RegardError, match="Restore it"):
            PictureStore(tmp_path / "store")


class TestCaptions:
    def test_tabs_and_json_say_the_same(self, tmp_path):
        pairs = captions_of(folder(tmp_path / "photos"))
        tabs = written(tmp_path / "a.tsv", pairs)
        by_name = {name: [text for one, text in pairs if one == name] for name, _ in pairs}
        lines = [{"image": name, "caption": texts} for name, texts in by_name.items()]
        (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        one, other = (
            list(read(ImageFiles(images=str(tmp_path / "photos"), captions=[path])))
            for path in (tabs, str(tmp_path / "a.jsonl"))
        )
        assert one == other == [(f"{tmp_path}/photos/{name}", text) for name, text in pairs]

    def test_a_file_may_hold_several_parts(self, tmp_path):
        names = folder(tmp_path / "photos", 4)
        rows = "name\tpart\ttext\n" + "".join(
            f"{name}\t{'ab'[place % 2]}\tt{place}\n" for place, name in enumerate(names)
        )
        (tmp_path / "a.tsv").write_text(rows)
        where = {"header": True, "split_column": 2, "caption_column": 3}
        corpus = ImageFiles(images=str(tmp_path / "photos"), captions=[str(tmp_path / "a.tsv")], split="b", **where)
        assert [pair.target for pair in read(corpus)] == ["t1", "t3"]
        check_captions([corpus])  # the others are named, though not taken

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("none.png\ta cat", r"a\.tsv:3 has a caption for `none\.png`, but .* no such picture"),
            ("../photos/p0.png\ta cat", "no such picture"),
            ("p0.png\t ", r"a\.tsv:3 has no caption for `p0\.png`"),
            ("p0.png", r"a\.tsv:3 has 1 tab-separated columns"),
        ],
    )
    def test_a_caption_without_a_picture_is_refused_and_one_without_words(self, line, message, tmp_path):
        names = folder(tmp_path / "photos", 2)
        path = written(tmp_path / "a.tsv", [(name, "a dog") for name in names])
        (tmp_path / "a.tsv").write_text((tmp_path / "a.tsv").read_text() + line + "\n")
        with pytest.raises(RegardError, match=message):
            list(read(ImageFiles(images=str(tmp_path / "photos"), captions=[path])))

    @pytest.mark.parametrize(
        "line",
        ["[1]", '{"image": "p0.png"}', '{"image": 1, "caption": "a"}', "{", '{"image": "p0.png", "caption": []}'],
    )
    def test_json_that_says_something_else_is_refused_with_its_line(self, line, tmp_path):
        folder(tmp_path / "photos", 1)
        (tmp_path / "a.jsonl").write_text(line + "\n")
        with pytest.raises(RegardError, match=r"a\.jsonl:1"):
            list(read(ImageFiles(images=str(tmp_path / "photos"), captions=[str(tmp_path / "a.jsonl")])))

    def test_pictures_without_a_caption_are_refused_by_name(self, tmp_path):
        names = folder(tmp_path / "photos", 12)
        (tmp_path / "photos" / "notes.txt").write_text("not a picture")
        path = written(tmp_path / "a.tsv", captions_of(names[:10]))
        config = settings({"images": str(tmp_path / "photos"), "captions": path})
        with pytest.raises(RegardError, match=r"p10\.png and 1 more"):
            prepare(from_mapping(config), tmp_path / "run")
        rest = written(tmp_path / "b.tsv", captions_of(names[10:]))
        config["data"]["validation"] = {"images": str(tmp_path / "photos"), "captions": rest}
        prepare(from_mapping(config), tmp_path / "other")

    def test_a_folder_that_is_not_there_is_named(self, tmp_path):
        path = written(tmp_path / "a.tsv", [("a.png", "a dog")])
        with pytest.raises(RegardError, match="nowhere does not exist"):
            list(read(ImageFiles(images=str(tmp_path / "nowhere"), captions=[path])))


def settings(train):
    return {
        "task": {"kind": "captioning"},
        "data": {"train": train, "held_out": 4},
        "text": {"tokenizer": {"kind": "words", "min_frequency": 1}},
        "model": {
            "width": 8,
            "encoder": {"kind": "image", "size": 8, "patch": 4, "layers": 1},
            "decoder": {"kind": "rnn"},
        },
        "training": {"batch_tokens": 40},
    }


class TestBatches:
    def test_a_batch_has_the_picture_of_each_of_its_captions(self, tmp_path):
        names = folder(tmp_path / "photos")
        path = written(tmp_path / "a.tsv", captions_of(names))
        config = from_mapping(settings({"images": str(tmp_path / "photos"), "captions": path}))
        prepared = prepare(config, tmp_path / "run")
        seen = set()
        for batch in prepared.task.batches(prepared.train).once():
            assert batch.pictures.shape == (len(batch), 3, 8, 8)
            for pixels, target in zip(batch.pictures, batch.target, strict=True):
                caption = prepared.task.output.tokenizer.decode(target.tolist())
                number = int(caption.split()[1])
                np.testing.assert_array_equal(pixels.numpy(), read_picture(str(tmp_path / "photos" / names[number]), 8))
                seen.add(caption)
        assert len(seen) == len(prepared.train) == 24 - len(prepared.validation_pairs)

    def test_what_is_held_out_is_held_out_by_picture(self, tmp_path):
        config = settings({"generate": "shapes", "size": 60, "captions": 3})
        config["data"]["held_out"] = 12
        prepared = prepare(from_mapping(config), tmp_path / "run")
        held = {pair.source for pair in prepared.validation_pairs}
        trained = {
            prepared.task.input.images.store.names[int(prepared.train[row][0][0])] for row in range(len(prepared.train))
        }
        assert held and trained and not held & trained


class TestConfigurations:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            (["model.encoder.kind=rnn"], "cannot read pictures, which is the input of task `captioning`"),
            (
                ["task.kind=translation", "model.encoder.kind=image"],
                "cannot read text, which is the input of task `translation`",
            ),
            (["task.kind=translation", "model.encoder.kind=rnn"], "data.train has pictures for sources"),
            (["data.train.generate=copy"], "data.train has text for sources"),
            (["model.encoder.patch=3"], "patches of 3 do not fill"),
            (["model.encoder.size=12", "model.encoder.patch=6"], "power of two"),
            (["task.doubly_stochastic=1", "model.join.kind=fixed"], "model.join is a fixed vector"),
            (["task.shift=8"], "only 8 pixels wide"),
            (["text.target.kind=words"], "text.target has no effect"),
        ],
    )
    def test_what_makes_no_sense_with_pictures_is_refused(self, changes, message):
        with pytest.raises(UsageError, match=message):
            from_mapping(settings({"generate": "shapes", "size": 60}), changes)

    def test_a_picture_is_read_by_an_image_encoder_unless_told_which(self):
        given = settings({"generate": "shapes", "size": 60})
        del given["model"]["encoder"]
        assert from_mapping(given).cell.startswith("image (conv) → rnn")
        assert from_mapping(given, ["preset=transformer-tiny"]).cell.startswith("image (conv) → transformer")


def test_scenes_are_drawn_at_any_size():
    name = random.Random(2).choice(list(scenes(10, 3))).name
    small, large = read_picture(name, 24), read_picture(name, 48)
    assert small.shape == (3, 24, 24) and large.shape == (3, 48, 48)
    shrunk = large.reshape(3, 24, 2, 24, 2).mean((2, 4))
    assert np.abs(shrunk - small).mean() < 3


class TestInMemory:
    """Pictures as objects: the same pixels in whatever form, or a reason in one or two sentences."""

    PIXELS = np.random.default_rng(2).integers(0, 256, (20, 30, 3), dtype=np.uint8)

    def test_every_form_of_a_picture_has_the_same_pixels(self):
        grey = Image.fromarray(self.PIXELS).convert("L")
        shares = np.asarray(grey, dtype=np.float32) / 255
        forms = {
            "colour": [self.PIXELS, self.PIXELS / 255, torch.tensor(self.PIXELS / 255, requires_grad=True)],
            "grey": [grey, np.asarray(grey), shares, shares[:, :, None], Image.fromarray(shares)]
            + [grey.convert(mode) for mode in ("I", "F", "RGB", "LA", "CMYK")]
            + [Image.fromarray(np.asarray(grey).astype(np.uint16) * 257)],
        }
        for same in forms.values():
            with in_memory() as keep:
                found = [read_picture(keep(form), 8).astype(int) for form in same]
            for pixels in found:
                assert np.abs(pixels - found[0]).max() <= 1

    @pytest.mark.parametrize(
        ("wrong", "reason"),
        [
            (Image.new("RGB", (0, 5)), "no pixels"),
            (np.zeros((0, 5, 3), np.uint8), "0×5×3 has no pixels"),
            (np.zeros((3, 8, 9), np.uint8), "Transpose it"),
            (np.zeros((8, 9, 2), np.uint8), "must be H×W×3"),
            (np.full((8, 9), 200.0), "values from 200 to 200"),
            (np.full((8, 9), np.nan), "from 0 to 1"),
            (np.zeros((8, 9), np.int64), "of int64 8×9"),
            (None, "not NoneType"),
            ([[1.0], [1.0, 2.0]], "not list"),
        ],
    )
    def test_other_objects_are_refused(self, wrong, reason):
        with in_memory() as keep, pytest.raises(RegardError, match=reason):
            keep(wrong)
