"""Makes tiny random models and LoRA adapters that the engine loads in no time.

usage: models.py OUT_FOLDER NAME=TOKENIZER_FOLDER...

Each NAME gets the same small network with the given tokenizer: "llama" as a Llama, any other as a Qwen2. Adapters are
OUT_FOLDER/adapter-a and -b. What a model says is nonsense, but the same nonsense in every engine that serves it.
"""

import json
import pathlib
import shutil
import sys

import torch
from safetensors.torch import save_file

HIDDEN, INNER, LAYERS, HEADS, KV_HEADS, HEAD_SIZE = 64, 128, 2, 2, 2, 32
# Of the largest tokenizer that is used; smaller ones leave rows without a meaning.
VOCABULARY = 151_936
CONTEXT = 8192


def config(family, end_ids):
    # The family matters for tokens, too: loading a tokenizer, transformers 5 goes by it more than by the files.
    return {
        "architectures": ["LlamaForCausalLM" if family == "llama" else "Qwen2ForCausalLM"],
        "model_type": family,
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_SIZE,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": CONTEXT,
        "rope_theta": 1e6,
        "rms_norm_eps": 1e-6,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "eos_token_id": end_ids[0],
        "torch_dtype": "float32",
        "use_cache": True,
    }


def network():
    source = torch.Generator().manual_seed(7)

    def normal(*shape, std):
        return (torch.randn(*shape, generator=source) * std).contiguous()

    weights = {
        "model.embed_tokens.weight": normal(VOCABULARY, HIDDEN, std=1.0),
        "lm_head.weight": normal(VOCABULARY, HIDDEN, std=0.6),
        "model.norm.weight": torch.ones(HIDDEN),
    }
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        weights[at + "input_layernorm.weight"] = torch.ones(HIDDEN)
        weights[at + "post_attention_layernorm.weight"] = torch.ones(HIDDEN)
        for name, heads in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
            weights[at + f"self_attn.{name}_proj.weight"] = normal(heads * HEAD_SIZE, HIDDEN, std=0.12)
            weights[at + f"self_attn.{name}_proj.bias"] = torch.zeros(heads * HEAD_SIZE)
        weights[at + "self_attn.o_proj.weight"] = normal(HIDDEN, HEADS * HEAD_SIZE, std=0.12)
        weights[at + "mlp.gate_proj.weight"] = normal(INNER, HIDDEN, std=0.12)
        weights[at + "mlp.up_proj.weight"] = normal(INNER, HIDDEN, std=0.12)
        weights[at + "mlp.down_proj.weight"] = normal(HIDDEN, INNER, std=0.12)
    return weights


def end_ids(tokenizer):
    """The ids of the tokens that end a turn or a text."""
    names = {"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "<｜end▁of▁sentence｜>"}
    added = json.loads((tokenizer / "tokenizer.json").read_text())["added_tokens"]
    return [token["id"] for token in added if token["content"] in names]


def make_model(folder, family, tokenizer, weights):
    if family == "llama":
        weights = {name: weight for name, weight in weights.items() if not name.endswith(".bias")}
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        if (tokenizer / name).exists():
            shutil.copy(tokenizer / name, folder)
    ends = end_ids(tokenizer)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    # Last: a folder with a configuration is a whole one.
    (folder / "config.json").write_text(json.dumps(config(family, ends)))


def make_adapter(folder, seed, rank=8):
    folder.mkdir(parents=True, exist_ok=True)
    source = torch.Generator().manual_seed(seed)
    weights = {}
    for layer in range(LAYERS):
        for name, heads in (("q", HEADS), ("v", KV_HEADS)):
            at = f"base_model.model.model.layers.{layer}.self_attn.{name}_proj."
            weights[at + "lora_A.weight"] = torch.randn(rank, HIDDEN, generator=source) * 0.3
            weights[at + "lora_B.weight"] = torch.randn(heads * HEAD_SIZE, rank, generator=source) * 0.3
    save_file(weights, folder / "adapter_model.safetensors")
    settings = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "target",
        "r": rank,
        "lora_alpha": 16,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": ["q_proj", "v_proj"],
        "fan_in_fan_out": False,
        "inference_mode": True,
    }
    (folder / "adapter_config.json").write_text(json.dumps(settings))


out, *named = sys.argv[1:]
weights = network()
for pair in named:
    name, tokenizer = pair.split("=", 1)
    family = "llama" if name == "llama" else "qwen2"
    make_model(pathlib.Path(out) / name, family, pathlib.Path(tokenizer), weights)
make_adapter(pathlib.Path(out) / "adapter-a", 11)
make_adapter(pathlib.Path(out) / "adapter-b", 12)
