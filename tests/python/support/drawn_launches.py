"""Random launches of Megatron Core and torchtitan, half of them broken on purpose."""

import random


def _split(draw, pp, chunks):
    """(layers, fields that say how they lie)."""
    each = pp * (chunks or 1)
    kind = draw.choice(["even", "even", "ends", "text", "list", "accounted"])
    layers = each * draw.randint(1, 5)
    vpp = {"virtual_pipeline_model_parallel_size": chunks} if chunks else {}
    if kind == "ends" and pp > 2:
        first, last = [(chunks or 1) * draw.randint(1, 4) for _ in range(2)]
        middle = (pp - 2) * (chunks or 1) * draw.randint(1, 4)
        fields = {"num_layers_in_first_pipeline_stage": first, "num_layers_in_last_pipeline_stage": last}
        return first + last + middle, {**vpp, **fields}
    if kind in ("text", "list"):
        counts = [draw.randint(0, 5) for _ in range(each)]
        if sum(counts) == 0:
            counts[-1] = 2
        mtp = draw.choice([0, 0, 1])
        stages = ["t" * count for count in counts]
        stages[0] = "E" + stages[0]
        stages[-1] += "m" * mtp + "L"
        text = "|".join(stages)
        if kind == "list":
            names = {"E": "embedding", "t": "decoder", "m": "mtp", "L": "loss"}
            text = [[names[letter] for letter in stage] for stage in stages]
        fields = {"pipeline_model_parallel_layout": text}
        if mtp:
            fields["mtp_num_layers"] = mtp
        return sum(counts), {**(vpp if draw.random() < 0.5 else {}), **fields}
    if kind == "accounted":
        flags = [name for name in ("embedding", "loss") if draw.random() < 0.7]
        fields = {f"account_for_{name}_in_pipeline_split": True for name in flags}
        return max(1, layers - len(flags)), {**vpp, **fields}
    return layers, vpp


def _experts(draw, fields, ranks):
    experts = draw.choice([8, 16, 64])
    fields.update(num_moe_experts=experts, add_bias_linear=False, moe_router_topk=draw.choice([2, 4]),
                  moe_ffn_hidden_size=draw.choice([512, 768, 1024]),
                  moe_token_dispatcher_type=draw.choice(["alltoall", "flex", "allgather"]))
    fields["expert_tensor_parallel_size"] = draw.choice([1, fields["tensor_model_parallel_size"]])
    together = ranks // fields["expert_tensor_parallel_size"]
    fields["expert_model_parallel_size"] = draw.choice(
        [ep for ep in (1, 2, 4, 8) if together % ep == 0 and experts % ep == 0])
    if draw.random() < 0.4:
        fields["moe_shared_expert_intermediate_size"] = 1024
    if draw.random() < 0.4 and fields["expert_model_parallel_size"] > 1 and "mtp_num_layers" not in fields:
        fields.update(overlap_moe_expert_parallel_comm=True, bf16=True, moe_token_dispatcher_type="alltoall")


def _recompute(draw, fields):
    kind = draw.choice(["none", "none", "selective", "block", "uniform"])
    if kind == "selective":
        fields.update(recompute_granularity="selective",
                      recompute_modules=draw.choice([["core_attn"], ["layernorm", "mlp"]]))
    elif kind != "none" and not fields.get("overlap_moe_expert_parallel_comm"):
        fields.update(recompute_granularity="full", recompute_method=kind, recompute_num_layers=draw.randint(1, 4))


def megatron(seed):
    """(fields of TransformerConfig, gpus, sequence, micro batch, global batch, vocabulary)."""
    draw = random.Random(seed)
    tp, pp = draw.choice([1, 2, 4, 8]), draw.choice([1, 2, 3, 4, 8])
    cp, dp = draw.choice([1, 1, 2]), draw.choice([1, 2, 4])
    chunks = draw.choice([None, None, 2, 3]) if pp > 1 else None
    layers, split = _split(draw, pp, chunks)
    heads = tp * draw.choice([2, 4, 8])
    fields = {"num_layers": layers, "hidden_size": heads * 64, "num_attention_heads": heads,
              "tensor_model_parallel_size": tp, "pipeline_model_parallel_size": pp, "context_parallel_size": cp,
              "sequence_parallel": tp > 1 and draw.random() < 0.8, **split}
    if draw.random() < 0.5:
        fields["num_query_groups"] = draw.choice([n for n in (1, 2, 4, 8, 16) if heads % n == 0])
    if draw.random() < 0.5:
        fields["ffn_hidden_size"] = tp * draw.choice([320, 688])
    if draw.random() < 0.4:
        _experts(draw, fields, tp * cp * dp)
        fields["sequence_parallel"] = tp > 1
    _recompute(draw, fields)
    group = pp * draw.choice([1, 1, 2])
    if group != pp:
        fields["microbatch_group_size_per_vp_stage"] = group
    if draw.random() < 0.3:
        fields.update(overlap_p2p_comm=True, batch_p2p_comm=False)
    micro = draw.choice([1, 2])
    case = {"fields": fields, "gpus": tp * pp * cp * dp, "micro": micro,
            "sequence": 2 * cp * tp * draw.choice([16, 128]), "global": micro * dp * group * draw.randint(1, 4),
            "vocabulary": 128 * tp * draw.choice([10, 250])}
    if seed % 2:
        for _ in range(draw.choice([1, 1, 2])):
            _break(draw, case)
    return case


def _bump(draw, case, name):
    case["fields"][name] = max(1, case["fields"].get(name, 1) + draw.choice([-1, 1, 2]))


def _break(draw, case):
    """Something that is often, not always, a rule's end."""
    fields = case["fields"]
    layout = fields.get("pipeline_model_parallel_layout")
    ways = [lambda: _bump(draw, case, "num_layers"), lambda: _bump(draw, case, "num_attention_heads"),
            lambda: fields.update(num_query_groups=draw.choice([3, 6, 12])),
            lambda: fields.update(tensor_model_parallel_size=draw.choice([3, 5, 6])),
            lambda: fields.update(virtual_pipeline_model_parallel_size=draw.choice([1, 2, 4, 5])),
            lambda: fields.update(ffn_hidden_size=draw.choice([1001, 1366])),
            lambda: fields.update(expert_model_parallel_size=draw.choice([2, 3, 4])),
            lambda: fields.update(num_moe_experts=draw.choice([0, 6, 7])),
            lambda: fields.update(add_bias_linear=True), lambda: fields.update(bf16=True, fp16=True),
            lambda: fields.update(num_layers_in_first_pipeline_stage=draw.choice([0, 1, 3])),
            lambda: fields.update(num_layers_in_last_pipeline_stage=draw.choice([1, 2, 40])),
            lambda: fields.update(account_for_embedding_in_pipeline_split=True),
            lambda: fields.update(sequence_parallel=not fields["sequence_parallel"]),
            lambda: fields.update(recompute_granularity="full"),
            lambda: fields.update(recompute_granularity="selective"),
            lambda: fields.update(recompute_num_layers=2), lambda: fields.update(recompute_modules=["moe_act"]),
            lambda: fields.update(recompute_modules=["core_attention"], recompute_granularity="selective"),
            lambda: fields.update(distribute_saved_activations=True, recompute_granularity="full",
                                  recompute_method="block", recompute_num_layers=1),
            lambda: fields.update(overlap_moe_expert_parallel_comm=True),
            lambda: fields.update(delay_wgrad_compute=True),
            lambda: fields.update(moe_router_topk=1), lambda: fields.update(moe_ffn_hidden_size=768),
            lambda: fields.update(moe_shared_expert_intermediate_size=1000, moe_shared_expert_overlap=True),
            lambda: fields.update(mtp_num_layers=draw.choice([1, 2])),
            lambda: fields.update(microbatch_group_size_per_vp_stage=draw.choice([1, 3, 64])),
            lambda: fields.update(overlap_p2p_comm=True, batch_p2p_comm=True),
            lambda: fields.update(overlap_p2p_comm_warmup_flush=True),
            lambda: fields.update(defer_embedding_wgrad_compute=True),
            lambda: fields.update(cpu_offloading=True, cpu_offloading_num_layers=draw.choice([1, 2])),
            lambda: fields.update(fine_grained_activation_offloading=True, offload_modules=draw.choice(
                [["attn_proj"], ["core_attn", "attn_proj"], ["mlp"]])),
            lambda: fields.update(moe_router_group_topk=2, moe_router_num_groups=draw.choice([1, 3, 4])),
            lambda: fields.update(variable_seq_lengths=True),
            lambda: case.update(sequence=case["sequence"] + draw.choice([1, 2])),
            lambda: case.update(gpus=case["gpus"] + draw.choice([1, 2, 4])),
            lambda: case.update({"global": case["global"] + draw.choice([1, 2])}),
            lambda: case.update(vocabulary=case["vocabulary"] + 1)]
    if isinstance(layout, str):
        ways += 4 * [lambda: fields.update(pipeline_model_parallel_layout=draw.choice(
            [layout[1:], layout[:-1], layout + "|", layout.replace("t", "x", 1), layout.replace("|", "", 1),
             "L" + layout, "(" + layout, layout.replace("E", "Em"), layout.replace("tt", "t*2,"),
             layout.replace("L", "LL"), "E" + layout, layout.replace("t|", "(t|)*1")]))]
    elif layout:
        ways += 3 * [lambda: layout[0].append("encoder"), lambda: layout[-1].insert(0, "mtp"),
                     lambda: layout[0].append("decoders"), lambda: layout[0].pop()]
    draw.choice(ways)()


def hydra(fields):
    """Fields as overrides."""
    def text(value):
        if isinstance(value, list):
            return "[" + ",".join(map(text, value)) + "]"
        return "null" if value is None else str(value)
    return [f"model.{name}={text(value)}" for name, value in fields.items()]


SCHEDULES = ["1F1B", "GPipe", "Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV"]
MODELS = {"llama3-8b": {"layers": 32, "heads": 32, "kv_heads": 8, "experts": 0, "tied": False},
          "qwen3-30b-a3b": {"layers": 48, "heads": 32, "kv_heads": 4, "experts": 128, "tied": False},
          "qwen2.5-14b": {"layers": 48, "heads": 40, "kv_heads": 8, "experts": 0, "tied": False}}


def titan(seed):
    """{parallelism, training, gpus, model's name}."""
    draw = random.Random(10_000 + seed)
    name = draw.choice(list(MODELS))
    model = MODELS[name]
    pp, tp = draw.choice([1, 2, 3, 4, 8]), draw.choice([1, 2, 4])
    cp, shard = draw.choice([1, 1, 2]), draw.choice([1, 2, 4])
    schedule = draw.choice(SCHEDULES)
    single = schedule in ("1F1B", "GPipe")
    parallelism = {"pipeline_parallel_degree": pp, "tensor_parallel_degree": tp, "context_parallel_degree": cp,
                   "data_parallel_shard_degree": draw.choice([-1, shard]), "pipeline_parallel_schedule": schedule}
    if model["experts"] and draw.random() < 0.5:
        parallelism["expert_parallel_degree"] = draw.choice([ep for ep in (1, 2, 4) if tp * cp * shard % ep == 0])
    each = 1 if single else 2
    if draw.random() < 0.3:
        parallelism["module_fqns_per_model_part"] = _modules(draw, model["layers"], pp * each)
    elif draw.random() < 0.2:
        stages = pp * each
        parallelism["pipeline_parallel_layers_per_stage"] = -(-(model["layers"] + 2) // stages)
    training = {"local_batch_size": pp * each * draw.randint(1, 3), "seq_len": 2 * cp * tp * 64,
                "disable_cuda_graphs": True}
    case = {"parallelism": parallelism, "training": training, "gpus": pp * tp * cp * shard, "model": name}
    if seed % 2:
        for _ in range(draw.choice([1, 1, 2])):
            _break_titan(draw, case)
    return case


def _modules(draw, layers, stages):
    cuts = sorted(draw.sample(range(1, layers), stages - 1)) if stages > 1 else []
    parts = [[f"layers.{i}" for i in range(a, b)] for a, b in zip([0, *cuts], [*cuts, layers])]
    parts[0].insert(0, "tok_embeddings")
    parts[-1] += ["norm", "lm_head"]
    return parts


def _break_titan(draw, case):
    p, t = case["parallelism"], case["training"]
    draw.choice([lambda: p.update(pipeline_parallel_degree=draw.choice([2, 3, 5, 16])),
                 lambda: p.update(tensor_parallel_degree=draw.choice([3, 8, 16])),
                 lambda: p.update(data_parallel_shard_degree=draw.choice([3, 0, 7])),
                 lambda: p.update(data_parallel_replicate_degree=draw.choice([2, 3])),
                 lambda: p.update(expert_parallel_degree=draw.choice([3, 5, 16])),
                 lambda: p.update(pipeline_parallel_schedule=draw.choice(
                     ["1f1b", "PipelineScheduleSingle", "PipelineScheduleMulti", "ZBV", "_PipelineScheduleRuntime",
                      "DualPipeV", "interleaved1f1b"])),
                 lambda: p.update(pipeline_parallel_schedule_csv="no-such.csv"),
                 lambda: p.update(pipeline_parallel_layers_per_stage=draw.choice([1, 5, 7, 100])),
                 lambda: p.update(pipeline_parallel_first_stage_less_layers=draw.choice([0, 5, 30])),
                 lambda: p.update(pipeline_parallel_last_stage_less_layers=draw.choice([0, 3, 40])),
                 lambda: p.update(pipeline_parallel_microbatch_size=draw.choice([2, 3, 5])),
                 lambda: p.update(module_fqns_per_model_part=_modules(draw, 20, draw.randint(1, 9))),
                 lambda: t.update(local_batch_size=draw.choice([1, 2, 5, 7, 9])),
                 lambda: t.update(global_batch_size=draw.choice([0, 7, 64, 96])),
                 lambda: t.update(seq_len=draw.choice([100, 1001, 4096])),
                 lambda: t.update(disable_cuda_graphs=False),
                 lambda: p.update(enable_sequence_parallel=False),
                 lambda: case.update(gpus=case["gpus"] + draw.choice([1, 2]))])()


def titan_flags(case):
    """The case's settings as torchtitan takes them."""
    words = []
    for section in ("parallelism", "training"):
        for name, value in case[section].items():
            if isinstance(value, bool):
                words.append(f"--{section}.{'' if value else 'no_'}{name}")
            elif isinstance(value, list):
                words += [f"--{section}.{name}", *(",".join(part) for part in value)]
            else:
                words += [f"--{section}.{name}", str(value)]
    return words


# Fields whose flag is spelled otherwise; the others are the field's name with dashes.
FLAGS = {"num_layers_in_first_pipeline_stage": "decoder-first-pipeline-num-layers",
         "num_layers_in_last_pipeline_stage": "decoder-last-pipeline-num-layers",
         "virtual_pipeline_model_parallel_size": "num-virtual-stages-per-pipeline-rank",
         "microbatch_group_size_per_vp_stage": "microbatch-group-size-per-virtual-pipeline-stage",
         "overlap_p2p_comm_warmup_flush": "overlap-p2p-communication-warmup-flush", "num_moe_experts": "num-experts"}
# Said by no flag, or by one that turns a default off.
NO_FLAG = ("variable_seq_lengths", "batch_p2p_comm", "overlap_p2p_comm", "add_bias_linear", "cpu_offloading")


def arguments(seed):
    """A case as Megatron-LM's arguments: (the case, words)."""
    case = megatron(20_000 + seed)
    fields = case["fields"]
    if isinstance(fields.get("pipeline_model_parallel_layout"), list):  # no flag says a list
        del fields["pipeline_model_parallel_layout"]
        fields.pop("mtp_num_layers", None)
    for name in ("variable_seq_lengths", "batch_p2p_comm"):
        fields.pop(name, None)
    fields.setdefault("overlap_p2p_comm", seed % 3 > 0)
    words = ["--position-embedding-type", "rope", "--max-position-embeddings", "1000000"]
    words += [] if fields["overlap_p2p_comm"] else ["--no-overlap-p2p-communication"]
    words += [] if fields.setdefault("add_bias_linear", seed % 4 > 1) else ["--disable-bias-linear"]
    words += ["--group-query-attention"] if "num_query_groups" in fields else []
    for name, value in fields.items():
        flag = "--" + FLAGS.get(name, name.replace("_", "-"))
        if name in NO_FLAG or value is False:
            continue
        words += [flag] if value is True else [flag, *(value if isinstance(value, list) else [value])]
    words += ["--seq-length", case["sequence"], "--micro-batch-size", case["micro"],
              "--global-batch-size", case["global"], "--vocab-size", case["vocabulary"]]
    return case, [str(word) for word in words]
