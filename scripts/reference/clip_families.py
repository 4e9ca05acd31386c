"""Folders of small random models as their libraries and exporters write them, with the values of those libraries.

    clip_families.py OUT [FAMILY ...]    write each family below OUT

Each folder has expected.json: the tokens of texts, the pixels of pictures, vectors, and U with its gradient by
autograd in float64. TestExternalFamilies in tasks/prompttune reads them through the whole program: files found,
tokenizer, preparation of pictures, towers and prompts.
"""

from __future__ import annotations

import copy
import dataclasses
import io
import json
import pathlib
import random
import re
import string
import sys
import unicodedata
from collections.abc import Callable

import clip_models as models
import clip_quantised
import clip_reference as ref
import ftfy
import numpy as np
import onnx
import open_clip
import pictures
import sentencepiece
import sessions
import tokenizers
import torch
import transformers
from open_clip.push_to_hf_hub import save_config_for_hf
from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image
from tokenize_clip_samples import CAPTIONS, CLIP_HARD
from tokenize_samples import HARD, PLAIN

TEXTS = ["a photo of a cat", "The Old house, near  the lane!", "caf\u00e9 42"]
TEMPLATE = "the _ of the _"
WORDS = ["old", "house", "door", "table", "she", "letter", "book", "and"]
SIDE, LENGTH, PATCH = 16, 14, 8
MARKS = [*string.punctuation, *string.ascii_uppercase, *"\u2018\u2019\u201c\u201d\u2026\u2014\u00a0\u3000\uff01\uff21\uff3f\u00c9\u0130\t\n\x0b", "_ _", " ", "  "]


@dataclasses.dataclass
class Model:
    """What expected.json is computed from."""

    module: torch.nn.Module
    tokens: Callable[[str], list[int]]  # with the tokens around a text, without padding
    prepare: Callable[[Image.Image], np.ndarray]  # float32 [3, side, side]
    embedding: Callable = models.embedding  # the layer of a module that looks tokens up
    text: Callable = models.text_vectors
    image: Callable = models.image_vectors
    dtype: torch.dtype = torch.float64
    lines: list[str] = dataclasses.field(default_factory=list)  # texts to compare in their tokens only


def corpus() -> list[str]:
    lines = [*PLAIN, *TEXTS, *(f"{TEMPLATE.replace('_', w)} {w} {w}." for w in WORDS)]
    return [line.replace("[MASK]", "it") for line in lines * 4]


def sentence_pieces(kind: str, **options) -> bytes:
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus()), model_writer=out, model_type=kind, vocab_size=900, character_coverage=1.0,
                                             hard_vocab_limit=False, minloglevel=2, num_threads=1, **options)  # fmt: skip
    return out.getvalue()


def gemma(folder: pathlib.Path):
    """SigLIP 2's: bytes for what has no piece, no token before a text and <eos> after it."""
    path = folder / "tokenizer.model"
    path.write_bytes(sentence_pieces("bpe", byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
                                     add_dummy_prefix=False, pad_id=0, eos_id=1, bos_id=2, unk_id=3))  # fmt: skip
    return transformers.GemmaTokenizerFast(vocab_file=str(path), add_bos_token=False, add_eos_token=True, model_max_length=LENGTH, padding_side="right")


def t5(folder: pathlib.Path):
    """SigLIP's. Its own class is slow; the published tokenizer.json is T5's with a normalizer that does the same."""
    path = folder / "spiece.model"
    path.write_bytes(sentence_pieces("unigram", pad_id=0, eos_id=1, unk_id=2, bos_id=-1))
    fast = transformers.T5TokenizerFast(vocab_file=str(path), extra_ids=0, pad_token="</s>", model_max_length=LENGTH, add_prefix_space=True)
    clean, inner = tokenizers.normalizers, fast.backend_tokenizer.normalizer
    marks = tokenizers.Regex("[" + re.escape(string.punctuation) + "]")
    fast.backend_tokenizer.normalizer = clean.Sequence([clean.Lowercase(), clean.Replace(marks, ""), clean.Replace(tokenizers.Regex(r"\s+"), " "), clean.Strip(), inner])
    return fast


def xlm(folder: pathlib.Path):
    """MetaCLIP 2's."""
    path = folder / "sentencepiece.bpe.model"
    path.write_bytes(sentence_pieces("unigram"))
    return transformers.XLMRobertaTokenizerFast(vocab_file=str(path), model_max_length=LENGTH)


def byte_pairs(folder: pathlib.Path):
    """CLIP's, trained on the same lines."""
    tok = tokenizers.Tokenizer(tokenizers.models.BPE(end_of_word_suffix="</w>"))
    tok.normalizer = tokenizers.normalizers.Sequence([tokenizers.normalizers.NFC(), tokenizers.normalizers.Replace(tokenizers.Regex(r"\s+"), " "), tokenizers.normalizers.Lowercase()])
    pattern = tokenizers.Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+")
    tok.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([tokenizers.pre_tokenizers.Split(pattern, "removed", invert=True), tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)])
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tok.train_from_iterator(corpus(), tokenizers.trainers.BpeTrainer(vocab_size=800, initial_alphabet=alphabet, end_of_word_suffix="</w>", show_progress=False))
    model = json.loads(tok.to_str())["model"]
    vocab = model["vocab"] | {name: len(model["vocab"]) + i for i, name in enumerate(("<|startoftext|>", "<|endoftext|>"))}
    (folder / "vocab.json").write_text(json.dumps(vocab))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(" ".join(m) + "\n" for m in model["merges"]))
    return transformers.CLIPTokenizerFast(str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=LENGTH)


def hugging(folder: pathlib.Path, tok, config, processor, kinds, half=False, change=lambda module: module, **how) -> Model:
    """A folder of transformers with towers in onnx/, as its exporters lay it out."""
    torch.manual_seed(0)
    module = transformers.AutoModel.from_config(config, attn_implementation="eager")
    module = change(models.randomise(models.halved(module) if half else module, 7))
    module = models.halved(module) if half else module
    module.config.save_pretrained(folder)
    processor.save_pretrained(folder)
    for kind in kinds:
        suffix = "_fp16" if half else ""
        models.export(copy.deepcopy(module), kind, folder / "onnx" / f"{ref.FILES[kind]}{suffix}.onnx", **how)
    return Model(module, lambda text: tok(text)["input_ids"], lambda image: processor.image_processor(image, return_tensors="np")["pixel_values"][0])


SHARED = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2}
VISION = {**SHARED, "image_size": SIDE, "patch_size": PATCH}


def siglip(folder: pathlib.Path, tokenizer=t5, **how) -> Model:
    tok = tokenizer(folder)
    text = {**SHARED, "vocab_size": len(tok), "max_position_embeddings": LENGTH, "pad_token_id": tok.pad_token_id, "eos_token_id": tok.eos_token_id, "projection_size": 16}
    config = transformers.SiglipConfig(text_config=text, vision_config=VISION)
    processor = transformers.SiglipProcessor(transformers.SiglipImageProcessor(size={"height": SIDE, "width": SIDE}), tok)
    got = hugging(folder, tok, config, processor, ["padded_text", "pooled_vision"], **{"opset": 17, "mask": False, **how})
    got.text = lambda module, ids: module.get_text_features(input_ids=padded(ids, tok.pad_token_id))
    if tokenizer is t5:
        got.tokens = lambda text: transformers.SiglipTokenizer(str(folder / "spiece.model"))(text)["input_ids"]
    return got


def padded(ids: torch.Tensor, value: int, length=LENGTH) -> torch.Tensor:
    return torch.nn.functional.pad(ids, (0, length - ids.shape[1]), value=value)


def clip_processor(tok):
    size = {"size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}}
    return transformers.CLIPProcessor(transformers.CLIPImageProcessor(**size), tok)


def clip(folder: pathlib.Path, tokenizer=byte_pairs, config=transformers.CLIPConfig, **how) -> Model:
    tok = tokenizer(folder)
    text = {**SHARED, "vocab_size": len(tok), "max_position_embeddings": LENGTH, "projection_dim": 12,
            "bos_token_id": tok.bos_token_id, "eos_token_id": tok.eos_token_id, "pad_token_id": tok.pad_token_id}  # fmt: skip
    c = config(text_config=text, vision_config={**VISION, "projection_dim": 12}, projection_dim=12)
    return hugging(folder, tok, c, clip_processor(tok), ["text", "vision"], **{"opset": 17, **how})


def published(folder: pathlib.Path):
    """CLIP's published vocabulary, which open_clip brings along."""
    tok = open_clip.SimpleTokenizer()
    names = {"<start_of_text>": "<|startoftext|>", "<end_of_text>": "<|endoftext|>"}
    (folder / "vocab.json").write_text(json.dumps({names.get(k, k): v for k, v in tok.encoder.items()}))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(" ".join(m) + "\n" for m in tok.bpe_ranks))
    return transformers.CLIPTokenizerFast(str(folder / "vocab.json"), str(folder / "merges.txt"))


def openclip(folder: pathlib.Path, layout: str, **text) -> Model:
    """A model of open_clip: "hub" is the folder of its own function with towers in onnx/, "parts" has a folder for each tower."""
    siglip = bool(text)
    clean = text.get("tokenizer_kwargs")
    tok = (gemma if clean else t5)(folder) if siglip else open_clip.SimpleTokenizer()
    pad = tok.pad_token_id if siglip else 0
    config = {"embed_dim": 12, "vision_cfg": {"image_size": SIDE, "patch_size": PATCH, "width": 16, "head_width": 4, "layers": 2},
              "text_cfg": {"context_length": 77, "vocab_size": len(tok) if siglip else tok.vocab_size, "width": 16, "heads": 4, "layers": 2, **text}}  # fmt: skip
    module = models.randomise((open_clip.CustomTextCLIP if siglip else open_clip.CLIP)(**config, quick_gelu=layout == "parts"), 9)
    tower = module.text if siglip else module
    length = tower.context_length
    open_clip.set_model_preprocess_cfg(module, {"mean": [0.5, 0.4, 0.3], "std": [0.5, 0.25, 0.3]} | ({"size": SIDE, "interpolation": "bilinear", "resize_mode": "squash"} if layout == "parts" else {}))
    where = {"hub": ("onnx/text_model", "onnx/vision_model", "."), "parts": ("textual/model", "visual/model", "textual")}[layout]
    if not siglip:
        (folder / where[2]).mkdir(exist_ok=True)
        published(folder / where[2])
    else:
        tok.save_pretrained(folder)
    if layout == "hub":
        save_config_for_hf(module, folder / "open_clip_config.json", config)
    else:
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "visual").mkdir()
        (folder / "visual/preprocess_cfg.json").write_text(json.dumps(open_clip.get_model_preprocess_cfg(module)))
    ids, pixels = torch.ones(1, length, dtype=torch.int32 if layout == "parts" else torch.int64), torch.zeros(1, 3, SIDE, SIDE)
    torch.backends.mha.set_fastpath_enabled(False)  # which no exporter knows
    for path, inputs, call, given, output in ((where[0], "text", tower.forward if siglip else module.encode_text, ids, "text_features"), (where[1], "image", module.visual, pixels, "image_features")):
        (folder / path).parent.mkdir(exist_ok=True)
        axes = {} if layout == "parts" else {inputs: {0: "batch"}, output: {0: "batch"}}
        torch.onnx.export(Call(module, call), (given,), str(folder / f"{path}.onnx"), dynamo=False, opset_version=17, input_names=[inputs], output_names=[output], dynamic_axes=axes)
    return Model(
        module, (lambda text: tok(text)["input_ids"]) if siglip else lambda text: [tok.sot_token_id, *tok.encode(text), tok.eot_token_id],
        lambda image: image_transform_v2(PreprocessCfg(**open_clip.get_model_preprocess_cfg(module) | {"size": SIDE}), is_train=False)(image).numpy(),
        lambda module: (module.text if siglip else module).token_embedding,
        lambda module, ids: module.encode_text(padded(ids, pad, length)), lambda module, pixels: module.encode_image(pixels))  # fmt: skip


def cleaned(folder: pathlib.Path) -> Model:
    """SigLIP 2 of open_clip, whose tokenizer takes texts without punctuation and capitals."""
    clean = {"clean": "canonicalize"}
    got = openclip(folder, "hub", context_length=LENGTH, no_causal_mask=True, proj_bias=True, pool_type="last", pad_id=0, norm_kwargs={"eps": 1e-6}, tokenizer_kwargs=clean)
    tok = open_clip.tokenizer.HFTokenizer(str(folder), context_length=4096, **clean)
    got.tokens = lambda text: [int(i) for i in tok(text)[0] if i != tok.tokenizer.pad_token_id]
    rng = random.Random(5)
    given = [line.strip() for line in [*PLAIN, *HARD, *CAPTIONS, *CLIP_HARD]]
    given += ["".join(c + rng.choice(MARKS) if rng.random() < 0.3 else c for c in line) for line in [*PLAIN, *CAPTIONS] * 3]
    got.lines = [line for line in given if canonical(line)]
    return got


def canonical(line: str) -> bool:
    """Whether the program cleans a line as open_clip does. Repairs of wrong decoding, HTML entities, ligatures and the final sigma are not made, and Unicode versions differ."""
    some = ftfy.TextFixerConfig(unescape_html=False, remove_terminal_escapes=False, fix_encoding=False, fix_latin_ligatures=False, fix_surrogates=False, fix_c1_controls=False)
    known = all(c not in "\u03a3\U00011935" and unicodedata.category(c) != "Cn" for c in line)
    return known and open_clip.tokenizer.basic_clean(line) == ftfy.fix_text(line, some).strip()


class Call(torch.nn.Module):
    """One function of a model as a module, for the exporter."""

    def __init__(self, module, function) -> None:
        super().__init__()
        self.module, self.function = module.eval(), function

    def forward(self, x):
        return self.function(x)


def quantised(folder: pathlib.Path, make) -> Model:
    """The towers of another family in onnxruntime's dynamic quantisation. Image vectors are those of onnxruntime, a picture at
    a time; the rest is that of torch with the same rounding."""
    got = make(folder)
    for kind in ("text_model", "vision_model"):
        path = folder / f"onnx/{kind}.onnx"
        plain = onnx.load(path)
        file = clip_quantised.quantise(plain, "dynamic")
        path.unlink()
        onnx.save(file, path.with_stem(f"{kind}_quantized"))
        if kind == "text_model":
            got.module = clip_quantised.straight_through(got.module, plain, file)
    session = sessions.exact(file.SerializeToString())
    got.image = lambda _module, pixels: torch.tensor(np.concatenate([session.run(None, {"pixel_values": row[None].numpy()})[-1] for row in pixels]))
    got.dtype = torch.float32  # as the file computes: near a half, float64 rounds to other integers
    return got


FAMILIES: dict[str, Callable[[pathlib.Path], Model]] = {
    "clip": clip,
    "clip-half#fp16": lambda f: clip(f, half=True, dtype="float16"),
    "siglip": siglip,
    "siglip2": lambda f: siglip(f, gemma),
    "siglip2-half#fp16": lambda f: siglip(f, gemma, half=True, dtype="float16-weights"),
    "metaclip2": lambda f: clip(f, xlm, transformers.MetaClip2Config),
    "clip-integers#quantized": lambda f: quantised(f, clip),
    "siglip2-integers#quantized": lambda f: quantised(f, lambda f: siglip(f, gemma)),
    "openclip": lambda f: openclip(f, "hub"),
    "openclip-parts": lambda f: openclip(f, "parts"),
    "openclip-siglip": lambda f: openclip(f, "hub", context_length=LENGTH, no_causal_mask=True, proj_bias=True, pool_type="last", pad_id=1, norm_kwargs={"eps": 1e-6}),
    "openclip-canonical": cleaned,
}


def energy(m: Model, module, ids: list[int], blanks: list[int], tokens: list[int], targets: torch.Tensor):
    """U, the mean cosine, and its gradient at the one-hot rows [blank, value] of what stands there."""
    layer = m.embedding(module)
    table = layer.weight.detach()
    one_hot = torch.stack([torch.nn.functional.one_hot(torch.tensor(tokens.index(ids[p])), len(tokens)) for p in blanks]).to(table.dtype).requires_grad_()
    rows = list(table[ids])
    for row, p in zip(one_hot @ table[tokens], blanks, strict=True):
        rows[p] = row
    rows = torch.stack(rows)
    hook = layer.register_forward_hook(lambda _m, _i, out: torch.cat([rows, out[0, len(rows) :]])[None])
    try:
        u = ref.cosines(m.text(module, torch.tensor([ids]))[0], targets).mean()
    finally:
        hook.remove()
    return u.item(), torch.autograd.grad(u, one_hot)[0]


def flat(x) -> list[float]:
    return torch.as_tensor(x).flatten().tolist()


def expected(m: Model, folder: pathlib.Path, name: str) -> dict:
    rng = np.random.default_rng(11)
    files, pixels = [], []
    for k, (h, w) in enumerate([(40, 23), (16, 16), (9, 31)]):
        files.append(f"{k}.png")
        Image.fromarray(pictures.scene(rng, h, w)).save(folder / files[-1])
        pixels.append(m.prepare(Image.open(folder / files[-1]).convert("RGB")))
    torch.set_default_dtype(m.dtype)
    try:
        module = copy.deepcopy(m.module).to(m.dtype).requires_grad_(False)
        images = torch.nn.functional.normalize(m.image(module, torch.tensor(np.stack(pixels)).to(m.dtype)), dim=1)
        ids = [m.tokens(t) for t in TEXTS]
        texts = torch.stack([torch.nn.functional.normalize(m.text(module, torch.tensor([i])), dim=1)[0] for i in ids])
        states = [[0, 1], [5, 5], [7, 2]]
        filled = [m.tokens(TEMPLATE.replace("_", "{}").format(*(WORDS[v] for v in s))) for s in states]
        blanks = [p for p in range(len(filled[0])) if len({f[p] for f in filled}) > 1]
        tokens = [next(f[p] for f in (m.tokens(TEMPLATE.replace("_", w)),) for p in blanks[:1]) for w in WORDS]
        got = [energy(m, module, f, blanks, tokens, images) for f in filled]
    finally:
        torch.set_default_dtype(torch.float32)
    return {"name": name, "texts": TEXTS, "ids": ids, "text_vectors": flat(texts), "files": files, "pixels": flat(np.stack(pixels)),
            "lines": [{"text": line, "ids": m.tokens(line)} for line in m.lines], "image_vectors": flat(images), "template": TEMPLATE, "words": WORDS, "tokens": tokens, "states": states,
            "u": [u for u, _ in got], "grad": flat(torch.stack([g for _, g in got]))}  # fmt: skip


def write(out: pathlib.Path, names) -> None:
    for name in names:
        folder = out / name.split("#")[0]
        folder.mkdir(parents=True)
        values = expected(FAMILIES[name](folder), folder, name)
        (folder / "expected.json").write_text(json.dumps(values) + "\n")


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]), sys.argv[2:] or FAMILIES)
