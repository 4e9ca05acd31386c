"""Tests of the recipe: fits, vocabulary, splits, graphs, resuming, evaluation; on a few drawn pictures."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw

from .__main__ import run, settings, arguments
from .captions import FILLERS, PHOTOS, Concept, clean
from .common import RecipeError
from .evaluate import both_ways, ranks
from .export import difference, fold, hf_text
from .prepare import colour, load
from .relevance import COLOURED, KAPPA, MEDIUM, Relevance
from .search import Model, climb, pixels
from .texts import Writer, pad
from .tokens import Tokens, join, learn, pieces
from . import words
from .train import Trainer

NAMES = ["red heart", "blue heart", "cat", "cat face", "dog face", "green apple", "red apple", "sun", "moon", "flag: France"]
KEYWORDS = {"heart": ["love", "card"], "cat": ["animal", "pet"], "dog": ["animal", "pet"], "apple": ["fruit"], "sun": ["weather"],
            "moon": ["weather", "OMG"], "flag:": ["flag"]}  # fmt: skip


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten emoji in two styles and three photos a class, in the layout of the real data."""
    root, rng = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    for folder, form in (("emoji-noto", "emoji_u{:04x}.png"), ("emoji-emojitwo", "{:04x}.png")):
        (root / folder).mkdir()
        rows = []
        for i, name in enumerate(NAMES):
            image = Image.new("RGBA", (128, 128), (0, 0, 0, 0))
            shape = ImageDraw.Draw(image)
            shape.ellipse((20, 20, 100, 60 + 4 * i), fill=(255 if "red" in name else 0, 25 * i, 255 if "blue" in name else 0, 255))
            image.save(root / folder / form.format(0x1F400 + i))
            words = [k for w in name.split() for k in KEYWORDS.get(w, [])]
            rows.append(json.dumps({"file": form.format(0x1F400 + i), "name": name, "keywords": words}))
        (root / folder / "captions.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    with tarfile.open(root / "cifar10-train-20k.tar", "w") as archive:
        for label in PHOTOS:
            for i in range(10):
                sink = io.BytesIO()
                Image.fromarray(rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(sink, "JPEG")
                info = tarfile.TarInfo(f"{label}/{i:04d}.jpg")
                info.size = sink.tell()
                archive.addfile(info, io.BytesIO(sink.getvalue()))
    return root


@pytest.fixture(scope="module")
def made(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole recipe, run tiny; the work folder."""
    work = tmp_path_factory.mktemp("work")
    run(["--tiny", "--images", str(images), "--work", str(work), "--max-steps", "12"])
    return work


def relevance(work: Path) -> tuple[Relevance, dict[str, int], Tokens]:
    concepts, pictures, _, colours = load(work)
    t = Tokens(work)
    first = {}
    for i, p in enumerate(pictures):
        first.setdefault(" ".join(concepts[p.concept].name), i)
    return Relevance(concepts, pictures, colours, t), first, t


def test_clean() -> None:
    assert clean("Man’s Shoe: “new”") == ["man", "'s", "shoe", "new"]
    assert clean("keycap: 0") == ["keycap", "0"]
    assert clean("T-Rex") == ["t", "rex"]
    assert clean("flag: Côte") == ["flag", "côte"]


def test_fit_orders_texts(made: Path) -> None:
    """True captions above half-true ones, those above unrelated words, those above strays and repeats."""
    r, first, t = relevance(made)

    def fit(text: str, name: str = "red heart") -> float:
        return float(r.fits(np.asarray([first[name]]), [t.text(text.split())])[0, 0])

    assert fit("red heart love") > fit("red heart cat") > fit("cat moon red") > fit("cat moon sun")
    assert fit("heart") > fit("heart heart") > fit("heart moon moon")
    assert fit("red heart") > fit("red heart", "blue heart") > fit("red heart", "cat")
    assert fit("heart", "cat") < 0 < fit("a picture of a red heart")
    # The same letters cut otherwise are a stray: the tokenizer would not cut them so.
    letters = [t.names.index(c) for c in ("h", "e", "a", "r", "t</w>")]
    assert t.word("heart") != letters and t.decode(letters) == "heart"
    assert float(r.fits(np.asarray([first["red heart"]]), [letters])[0, 0]) == pytest.approx(KAPPA * -0.75)


def test_fits_agree_with_a_loop(made: Path) -> None:
    """The matrix product equals the formula, summed token by token."""
    r, first, t = relevance(made)
    concepts, pictures, _, _ = load(made)
    texts = [t.text(s.split()) for s in ("red heart", "a cat face", "animal pet dog face", "moon moon love")] + [[3, 700, 5]]
    at = np.asarray(sorted(first.values()))
    got = r.fits(at, texts)
    for i, p in enumerate(at):
        for j, text in enumerate(texts):
            total, seen = 0.0, []
            for column in r.read(text):
                if column == r.medium[p]:
                    total += MEDIUM
                elif column == r.colour[p]:
                    total += COLOURED
                else:
                    total += float(r.g[pictures[p].concept, column])
                seen.append(column)
            name = {r.at[w] for w in concepts[pictures[p].concept].name if w not in FILLERS}
            want = KAPPA * total / len(text) + 3.0 * (bool(name) and name <= set(seen))
            assert got[i, j] == pytest.approx(want, abs=1e-4)


def test_vocabulary(made: Path) -> None:
    """transformers loads the tokenizer and agrees with it; specials are the last two ids."""
    from transformers import CLIPTokenizerFast

    fast, t = CLIPTokenizerFast.from_pretrained(made / "model"), Tokens(made / "model")
    n = t.size
    assert (fast.bos_token_id, fast.eos_token_id, len(fast)) == (n - 2, n - 1, n)
    for text in ("Red HEART", "a photo of a cat", "l'été, 42 naïve \u2764\ufe0f x's", ""):
        assert fast(text).input_ids == [n - 2, *t.tokenizer.encode(text, add_special_tokens=False).ids, n - 1]
    assert t.text(["red", "heart"]) == t.tokenizer.encode("red heart", add_special_tokens=False).ids
    assert t.decode(t.text(["red", "heart"])) == "red heart"
    assert t.decode(t.word("é")) == "é"


def test_word_list(made: Path) -> None:
    """Every word of the list is one token and stands in a caption of a picture that is trained on."""
    concepts, pictures, part, colours = load(made)
    head, *found = (made / "model" / words.NAME).read_text("utf-8").splitlines()
    assert head.startswith("# ") and found == sorted(set(found))
    said = set(FILLERS) | set(colours) | {"photo", "emoji", "small"}
    for p, k in zip(pictures, part, strict=True):
        if k == "train":
            c = concepts[p.concept]
            said |= {w for text in (c.name, *c.keywords) for w in text}
    t = Tokens(made / "model")
    for w in found:
        assert w.isalpha() and w in said and len(t.tokenizer.encode(w, add_special_tokens=False).ids) == 1
    assert {"a", "heart", "cat", "dog", "photo"} <= set(found)
    assert not {"s", "omg", "<|endoftext|>"} & set(found)


def test_word_list_counts() -> None:
    """A name is enough; keywords need two concepts or photos; slang, letters and hidden concepts count for nothing."""

    class Spaced:
        @staticmethod
        def word(w: str) -> list[int]:
            return [0] * (2 if w == "swordfish" else 1)

    concepts = [
        Concept("0", ["goat", "x", "up"], [["horn", "lol"], ["swordfish"], ["wtv"]], "emoji"),
        Concept("1", ["swan", "7"], [["horn"], ["feather"], ["lol"], ["wtv"]], "emoji"),
        Concept("2", ["flag", "peru", "st", "sar"], [["nation"]], "emoji"),
        Concept("3", ["toad"], [["hop"]], "photo"),
        Concept("4", ["yak"], [["feather"], ["beast"]], "emoji"),
    ]
    got = words.listed(concepts, {0, 1, 2, 3}, {"", "teal"}, Spaced())
    frames = set(words.listed([], set(), set(), Spaced()))
    assert set(got) - frames == {"goat", "up", "horn", "swan", "flag", "peru", "toad", "hop", "teal"}
    assert {"a", "of", "picture", "photo", "emoji"} <= frames
    assert "feather" in words.listed(concepts, {1, 4}, set(), Spaced())


def test_merges_equal_a_count_from_scratch() -> None:
    """The running counts of learn() against counting every pair anew before each merge."""
    lines = ["banana bandana band", "ana an a banana aaaa aaa", "cat cab scab cats"]
    got = learn(lines, 512 + 2 + 14)
    words = [(list(w), n) for w, n in pieces(lines).items()]
    for merge in got:
        count: dict = {}
        for w, n in words:
            for i in range(len(w) - 1):
                count[w[i], w[i + 1]] = count.get((w[i], w[i + 1]), 0) + n
        assert merge == min(count, key=lambda p: (-count[p], p))
        # Symbols have no spaces, so a replacement in the spaced word is a merge.
        spaced = [(" " + "  ".join(w) + " ", n) for w, n in words]
        words = [(w.replace(f" {merge[0]}  {merge[1]} ", f" {merge[0]}{merge[1]} ").split(), n) for w, n in spaced]
    assert len(got) == 14
    assert join(["a", "a", "a"], ("a", "a")) == ["aa", "a"]


def test_held_out_pictures_are_not_trained_on(made: Path) -> None:
    _, pictures, part, _ = load(made)
    shown = {p.concept for p, k in zip(pictures, part, strict=True) if k == "train"}
    kinds = set(part)
    assert {"train", "photo"} <= kinds
    for p, k in zip(pictures, part, strict=True):
        assert (k == "concept") == (p.concept not in shown)
        if k == "style":
            twin = [q for q in range(len(pictures)) if pictures[q].concept == p.concept]
            assert sorted(part[q] for q in twin) == ["style", "train"]
    trainer = Trainer(made, settings(arguments(["--tiny"])))
    rng = np.random.default_rng(0)
    for hunted in (False, True):
        assert all(part[i] == "train" for i in trainer.choose(rng, hunted))
    assert len(np.load(made / "emoji.npy")) + len(np.load(made / "photo.npy")) == part.count("train")


def test_texts(made: Path) -> None:
    """Captions are truer than spoilt ones on average, and no text is empty, too long or has a special."""
    r, first, t = relevance(made)
    concepts = load(made)[0]
    w, rng = Writer(concepts, t, r, 20), np.random.default_rng(0)
    at = list(first.values())
    groups = [[w.caption(p, rng) for p in at * 9], [w.spoilt(p, at[0], rng) for p in at * 9], [w.gibberish(rng) for _ in at * 9]]
    means = [np.mean([r.fits(np.asarray([p]), [x])[0, 0] for p, x in zip(at * 9, g, strict=True)]) for g in groups]
    assert means[0] > means[1] + 2 > means[2] + 3
    for text in (x for g in groups for x in g):
        assert 0 < len(text) <= 20 and max(text) < t.size - 2
    ids = pad([[1], [1, 2, 3]], 8, 9)
    assert ids.tolist() == [[8, 1, 9, 9, 9], [8, 1, 2, 3, 9]]


def test_colour() -> None:
    flat = np.zeros((40, 40, 4), np.uint8)
    flat[..., 3] = 255
    for rgb, name in (((220, 20, 30), "red"), ((30, 80, 220), "blue"), ((255, 220, 40), "yellow"), ((250, 250, 250), "white"),
                      ((40, 160, 60), "green"), ((120, 70, 30), "brown"), ((5, 5, 5), "black")):  # fmt: skip
        flat[..., :3] = rgb
        assert colour(flat) == name
    flat[:20, :, :3] = (220, 20, 30)
    assert colour(flat) == ""


def test_pixels_equal_transformers() -> None:
    """Our pre-processing is CLIPImageProcessor's, for wide, tall and square pictures."""
    from transformers import CLIPImageProcessor

    from .common import preprocessor_config

    config, rng = preprocessor_config(64), np.random.default_rng(0)
    processor = CLIPImageProcessor(**{k: v for k, v in config.items() if k != "image_processor_type"})
    for w, h in ((128, 128), (150, 90), (31, 77), (64, 64)):
        image = Image.fromarray(rng.integers(0, 255, (h, w, 3), dtype=np.uint8))
        want = processor(image, return_tensors="np")["pixel_values"][0]
        assert np.abs(pixels(image, config) - want).max() < 1e-5
    clear = Image.new("RGBA", (64, 64), (0, 0, 0, 0))
    assert np.allclose(pixels(clear, config), pixels(Image.new("RGB", (64, 64), "white"), config))


def test_export_equals_torch(made: Path) -> None:
    """onnxruntime, torch and transformers agree; folding keeps what the network computes."""
    from .common import Shape
    from .model import Clip

    state = torch.load(made / "checkpoint.pt", map_location="cpu", weights_only=True)
    model = Clip(Shape(**state["shape"])).eval()
    model.load_state_dict(state["model"])
    assert max(difference(made / "model", model)) < 1e-3
    ids = torch.from_numpy(pad([[4, 5, 6], [7], [8, 9]], model.shape.start, model.shape.end))
    with torch.no_grad():
        gap = hf_text(made / "model")(input_ids=ids).text_embeds - model.text(ids)
    assert float(gap.abs().max()) < 2e-3
    folded = fold({"visual." + k: v for k, v in model.visual.state_dict().items()})
    assert not any("running" in k or k.endswith("bn1.weight") for k in folded)
    x = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        want = model.visual.bn1(model.visual.conv1(x))
        got = torch.nn.functional.conv2d(x, folded["visual.conv1.weight"], folded["visual.bn1.bias"], stride=2, padding=1)
    assert torch.allclose(got, want, atol=1e-5)


def test_text_ignores_what_follows_its_end(made: Path) -> None:
    m = Model(made / "model")
    n = m.tokens.size
    a = m.text.run(None, {"input_ids": np.asarray([[n - 2, 5, 6, n - 1, n - 1, 7]])})[0]
    b = m.text.run(None, {"input_ids": np.asarray([[n - 2, 5, 6, n - 1]])})[0]
    assert np.allclose(a, b, atol=1e-5)
    c = m.text.run(None, {"input_ids": np.asarray([[n - 2, 6, 5, n - 1]])})[0]
    assert not np.allclose(b, c, atol=1e-4)


def test_training_resumes_as_if_it_had_not_stopped(made: Path, tmp_path: Path) -> None:
    for f in ("data.json", "tokenizer.json", "emoji.npy", "photo.npy"):
        (tmp_path / f).write_bytes((made / f).read_bytes())
    torch.set_num_threads(1)

    def fresh() -> Trainer:
        return Trainer(tmp_path, settings(arguments(["--tiny", "--max-steps", "6"])))

    whole = fresh()
    for _ in range(4):
        whole.step()
    half = fresh()
    for _ in range(2):
        half.step()
    half.save()
    rest = fresh()
    rest.load(tmp_path / "checkpoint.pt")
    for _ in range(2):
        rest.step()
    assert rest.steps == whole.steps and rest.adversary.text == whole.adversary.text
    for (name, a), b in zip(whole.model.state_dict().items(), rest.model.state_dict().values(), strict=True):
        assert torch.allclose(a, b, atol=1e-6), name


def test_ranks() -> None:
    cosine = np.asarray([[0.9, 0.1, 0.5], [0.2, 0.3, 0.8]])
    right = np.asarray([[False, False, True], [True, False, False]])
    assert ranks(cosine, right).tolist() == [1, 2]
    figures = both_ways(np.eye(2), np.eye(2), np.eye(2, dtype=bool))
    assert figures["image_to_text"]["top1"] == figures["text_to_image"]["top1"] == 1.0


def test_search_finds_better_prompts(made: Path, images: Path) -> None:
    m = Model(made / "model")
    goal = m.images(sorted((images / "emoji-noto").glob("*.png"))[:3]).mean(0)
    found = climb(made / "model", goal, 3, chains=2, steps=3, tries=8)
    random = m.texts([list(x) for x in np.random.default_rng(1).integers(0, m.tokens.size - 2, (50, 3))]) @ goal
    assert found[0][0] >= found[1][0] > float(np.mean(random))
    assert found[0][0] == pytest.approx(float((m.texts([found[0][1]]) @ goal)[0]), abs=1e-4)


def test_faults_are_one_line(tmp_path: Path, images: Path) -> None:
    for steps in (["train"], ["export"], ["prepare"]):
        with pytest.raises((RecipeError, OSError)) as e:
            run([*steps, "--tiny", "--work", str(tmp_path), "--images", str(tmp_path / "none")])
        assert "\n" not in str(e.value)
    assert (images / "emoji-noto").exists()
