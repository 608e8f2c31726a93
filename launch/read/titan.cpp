#include "pipeweaver/launch/titan.hpp"

#include "launch/read/titan_table.hpp"
#include "launch/read/values.hpp"
#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <array>

namespace pipeweaver::launch {

namespace {

// torchtitan 0.3.0, torchtitan/config/configs.py. `activation_checkpoint` is its activation-checkpoint:KIND.
constexpr std::array rows_of_titan{
    TitanRow{"parallelism.data_parallel_replicate_degree", &TitanLaunch::replicate},
    TitanRow{"parallelism.data_parallel_shard_degree", &TitanLaunch::shard, {}, true, -1},
    TitanRow{"parallelism.tensor_parallel_degree", &TitanLaunch::tp},
    TitanRow{"parallelism.pipeline_parallel_degree", &TitanLaunch::pp},
    TitanRow{"parallelism.context_parallel_degree", &TitanLaunch::cp},
    TitanRow{"parallelism.expert_parallel_degree", &TitanLaunch::ep},
    TitanRow{"parallelism.enable_sequence_parallel", &TitanLaunch::sequence_parallel},
    TitanRow{"parallelism.no_enable_sequence_parallel", &TitanLaunch::sequence_parallel, {}, false},
    TitanRow{"parallelism.module_fqns_per_model_part", &TitanLaunch::modules},
    TitanRow{"parallelism.pipeline_parallel_first_stage_less_layers", &TitanLaunch::first_less, {}, true, 0},
    TitanRow{"parallelism.pipeline_parallel_last_stage_less_layers", &TitanLaunch::last_less, {}, true, 0},
    TitanRow{"parallelism.pipeline_parallel_layers_per_stage", &TitanLaunch::layers_per_stage},
    TitanRow{"parallelism.pipeline_parallel_schedule", &TitanLaunch::schedule},
    TitanRow{"parallelism.pipeline_parallel_schedule_csv", &TitanLaunch::csv},
    TitanRow{"parallelism.pipeline_parallel_microbatch_size", &TitanLaunch::microbatch},
    TitanRow{"parallelism.fsdp_reshard_after_forward", &TitanLaunch::reshard, "default|always|never"},
    TitanRow{"training.local_batch_size", &TitanLaunch::local_batch},
    TitanRow{"training.global_batch_size", &TitanLaunch::global_batch, {}, true, -1},
    TitanRow{"training.seq_len", &TitanLaunch::seq_len},
    TitanRow{"training.disable_cuda_graphs", &TitanLaunch::cuda_graphs, {}, false},
    TitanRow{"training.no_disable_cuda_graphs", &TitanLaunch::cuda_graphs},
    TitanRow{"debug.spmd_typechecking", &TitanLaunch::typechecking},
    TitanRow{"compile.enable", &TitanLaunch::compiled},
    TitanRow{"compile.no_enable", &TitanLaunch::compiled, {}, false},
    TitanRow{"activation_checkpoint", &TitanLaunch::checkpoint, "none|selective|full|memory-budget"},
};

constexpr std::string_view mode_before_0_3 = "activation_checkpoint.mode";  // refused since

// Settings of parallelism and training that say nothing of layout or memory here.
constexpr std::array<std::string_view, 15> other_titan_names{"parallelism.enable_fsdp_symm_mem",
                                                             "parallelism.no_enable_fsdp_symm_mem",
                                                             "parallelism.spmd_backend",
                                                             "parallelism.context_parallel_load_balancer",
                                                             "parallelism.context_parallel_ptrr_mask_key",
                                                             "training.max_norm",
                                                             "training.steps",
                                                             "training.enable_cpu_offload",
                                                             "training.no_enable_cpu_offload",
                                                             "training.dtype",
                                                             "training.mixed_precision_param",
                                                             "training.mixed_precision_reduce",
                                                             "training.gc_freq",
                                                             "training.gc_debug",
                                                             "training.no_gc_debug"};

bool is_refused(const std::string& name) {
    if (name == mode_before_0_3) return true;
    const bool of_section = name.starts_with("parallelism.") || name.starts_with("training.");
    return of_section && std::find(other_titan_names.begin(), other_titan_names.end(), name) == other_titan_names.end();
}

// Sections and settings that 0.3 has no more (torchtitan 0.2.2 torchtitan/config/job_config.py).
bool is_of_before_0_3(const std::string& name) {
    return name.starts_with("job.") || name.starts_with("model.") || name == "training.dataset";
}

// A launch that names a file of TOML, which 0.3 does not read, or says what 0.3 has no more: other names were known,
// and the mode of checkpointing.
bool is_before_0_3(const SaidLaunch& said) {
    constexpr std::string_view file = "job.config_file";
    const auto variable = said.variables.find("CONFIG_FILE");
    if (variable != said.variables.end() && variable->second.ends_with(".toml")) return true;
    return std::any_of(said.settings.begin(), said.settings.end(),
                       [](const Setting& one) { return is_of_before_0_3(one.name); }) ||
           std::any_of(said.unset.begin(), said.unset.end(),
                       [&](const Unset& one) { return one.setting.ends_with(file); });
}

class TitanSetter {
public:
    TitanSetter(TitanLaunch& launch, const TitanRow& row, const Setting& setting)
        : launch_(launch), row_(row), setting_(setting) {}

    void operator()(std::int64_t TitanLaunch::*member) const { launch_.*member = integer_of(setting_, row_.least); }
    void operator()(TitanLaunch::Number TitanLaunch::*member) const {
        launch_.*member = is_null(setting_) ? TitanLaunch::Number{} : integer_of(setting_, row_.least);
    }
    void operator()(bool TitanLaunch::*member) const { launch_.*member = boolean_of(setting_) == row_.value; }
    void operator()(std::string TitanLaunch::*member) const {
        launch_.*member = is_null(setting_) ? std::string() : text_of(setting_, row_.choices);
    }
    // Each value is a stage, its names parted by commas.
    void operator()(std::vector<std::vector<std::string>> TitanLaunch::*member) const {
        (launch_.*member).clear();
        if (!is_null(setting_)) launch_.*member = parted_lists_of(setting_);
    }

private:
    TitanLaunch& launch_;
    const TitanRow& row_;
    const Setting& setting_;
};

const TitanRow* titan_row(const std::string& name) {
    const auto* const found =
        std::find_if(rows_of_titan.begin(), rows_of_titan.end(), [&](const TitanRow& row) { return row.name == name; });
    return found == rows_of_titan.end() ? nullptr : found;
}

}  // namespace

std::span<const TitanRow> titan_rows() { return rows_of_titan; }

bool is_titan_setting(const std::string& name) { return name == mode_before_0_3 || titan_row(name) != nullptr; }

std::string_view titan_name(const TitanMember& member, bool value) {
    const bool is_switch = std::holds_alternative<bool TitanLaunch::*>(member);
    const auto* const found = std::find_if(rows_of_titan.begin(), rows_of_titan.end(), [&](const TitanRow& row) {
        return row.member == member && (!is_switch || row.value == value);
    });
    PIPEWEAVER_ASSERT(found != rows_of_titan.end());
    return found->name;
}

std::vector<std::string> titan_names() {
    std::vector<std::string> names;
    names.reserve(rows_of_titan.size());
    for (const TitanRow& row : rows_of_titan) names.emplace_back(row.name);
    return names;
}

TitanLaunch read_titan(const SaidLaunch& said) {
    TitanLaunch launch;
    const bool is_older = is_before_0_3(said);
    if (is_older) launch.cuda_graphs = false;  // it made none of a pipeline's step
    for (const Setting& setting : said.settings) {
        const bool is_mode = is_older && setting.name == mode_before_0_3;
        if (const TitanRow* const row = titan_row(is_mode ? "activation_checkpoint" : setting.name)) {
            std::visit(TitanSetter(launch, *row, setting), row->member);
            continue;
        }
        launch.not_read.push_back(setting.name);
        if (!is_older && is_refused(setting.name)) launch.not_known.push_back(setting.name);
    }
    return launch;
}

}  // namespace pipeweaver::launch
