// Options that name model, cluster, layout and batch, for every command that needs them.
#pragma once

#include "pipeweaver/base/options.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/time.hpp"

#include <memory>
#include <optional>
#include <string>

namespace pipeweaver::planner {

struct Anchor;

/// A user's database, as a plan names it; for an empty path nothing. Throws Error{io}.
[[nodiscard]] std::optional<CostFile> find_costs(const std::string& path);

/// What operators cost on a cluster: the one place that decides where costs come from. Throws Error{input} for a file
/// that is no database or has nothing of the device, Error{io} also if it has changed.
[[nodiscard]] costdb::CostDatabase costs_of(const std::optional<CostFile>& file, const workloads::Cluster& cluster);

/// --tp, --cp, --pp, --dp or --ep: a number, "auto", or left out.
struct Degree {
    std::optional<std::int64_t> number;
    bool automatic = false;
};

/// How much all replicas train in a step together: "64" samples, or "64mb" microbatches.
struct GlobalBatch {
    std::int64_t number = 0;
    bool of_microbatches = false;

    /// As --global-batch is given.
    std::string text() const { return std::to_string(number) + (of_microbatches ? "mb" : ""); }
};

/// What is given in place of the recipe's own values.
struct RecipeOverrides {
    std::optional<int> zero;
    bool any_zero = false;  ///< the stage is chosen with the layout
    std::optional<Bytes> bucket;
    std::optional<emulator::Launched> launched;  ///< graphs or eager
    std::optional<Duration> launch, action;
    std::optional<double> overlap_slowdown, split_slowdown;
    std::optional<Bandwidth> host_link;
    std::optional<double> offload_percent;  ///< of the optimizer's states that lie on the host, 0 to 100
    std::string precision;                  ///< as emulator::with_precision() takes it; empty: the recipe's

    void add_to(OptionTable& options);

    /// The recipe with them. Throws Error{input} where it then contradicts itself.
    emulator::Recipe over(emulator::Recipe recipe) const;

private:
    void add_offload(OptionTable& options);
};

/// "20%": what --headroom is told.
[[nodiscard]] std::string text_of_headroom(emulator::Headroom headroom);

struct WorkloadOptions {
    static constexpr std::string_view automatic = "auto";  ///< a packing that PlanOptions settles
    static constexpr std::string_view split = "split";     ///< encoders that lie as the language model does

    std::string model, cluster, batch, dataset, costs, context, recipe, packing;
    std::string network{};                        ///< of workloads::networks(), or a file; empty: as the cluster says
    std::string rack{};                           ///< "64:4": GPUs of a rack, and its oversubscription; empty: so, too
    std::string anchor;                           ///< a file of read_anchor()
    std::shared_ptr<const Anchor> anchor_read{};  ///< what it says; null: nothing corrects the recipe
    /// In place of the one that `model` names, as_read(); null: that one. Likewise of `recipe`.
    std::shared_ptr<const workloads::Model> model_read{};
    std::shared_ptr<const emulator::Recipe> recipe_read{};
    RecipeOverrides overrides;
    Degree tp, pp, dp, cp, ep;
    std::string layout_as;                     ///< "auto": all degrees are tried, and those given are the user's own
    std::optional<std::int64_t> microbatches;  ///< of each replica
    std::optional<GlobalBatch> global_batch;   ///< in its place, of all
    bool equal_microbatches = false;           ///< Job::equal_microbatches
    std::optional<std::int64_t> microbatch_tokens;  ///< in place of the model's
    std::string too_long;                           ///< of workloads::too_long_names(), or empty: as usual
    std::string target = "free";                    ///< of targets(): what a layout is chosen for, and whose encoders
                                                    ///< the model has
    std::string encoders;                           ///< in its place: `split`, or one of frameworks::builders()
    bool deal_images = false;                       ///< Built::deals is switched on
    std::string trained;                            ///< modules, "projectors" or "all"; empty: as the model's file says
    std::string frozen;                             ///< modules or "projectors", in place of `trained`
    std::optional<std::int64_t> lora_rank;          ///< of adapters; none: no more than the model's file says
    std::string lora_modules, lora_targets;         ///< lists; empty: all that are trained, all matrices
    std::string lora_experts;                       ///< of workloads::ExpertAdapters, or empty: none
    bool lora_apart = false;                        ///< Adapters::apart, whatever the target's trainers have
    bool reference = false;                         ///< Model::reference, whatever the model's file says
    std::string teacher;                            ///< Model::teacher, by its name or file
    std::string sparsity{};                         ///< as set_sparsity() takes it; empty: the model's
    std::string module_context{};                   ///< as set_contexts() takes it; empty: as --context
    std::string encoder_recompute{};  ///< of workloads::EncoderRecompute, in place of Built::recompute; empty: as built
    Time layout_time{};               ///< that the choice of a layout may take; asked between layouts
    /// What operators cost, read before; none: `costs` and the embedded tables are read. Of the cluster's device.
    std::shared_ptr<const costdb::CostDatabase> known_costs;
    emulator::Headroom headroom = emulator::usual_headroom;
    bool automatic_headroom = false;                                ///< in its place headroom_for(), of the batch
    bool usual_headroom_is_auto = false;                            ///< it is so where nothing is said
    bool says_headroom = false;                                     ///< something is
    std::int64_t training_tokens = 0;                               ///< Job::training_tokens
    std::optional<double> price_per_gpu_hour;                       ///< USD, in place of the cluster's
    std::size_t store_bytes = emulator::LayerStore::default_bytes;  ///< for costs of layers that were priced before
    std::optional<std::string> batch_text;  ///< the batch itself, in place of a file; `batch` is what it is called

    void add_to(OptionTable& options);
    /// Those that say nothing of a layout, of replicas or of the whole run: for commands with layouts of their own.
    void add_apart_from_layout(OptionTable& options);

    /// Model and cluster, and of who asks for a batch this.
    std::vector<Needed> needed(bool with_batch = true) const;

    /// Throws Error{input} where options are missing, but for a batch, or contradict each other.
    void check() const;

    /// The model, with what is said of its microbatches, its encoders as they are built. Throws Error{input}, of a
    /// framework that has no row for it, too, and Error{io}.
    workloads::Model found_model() const;

    /// Throws Error{input} where images are to be dealt, and what builds the encoders has no switch for it.
    void require_dealt(const workloads::Model& of) const;

    /// Model, cluster, recipe and costs, without a layout. Throws Error{input}, Error{io}.
    emulator::Setup setup() const;

    /// The job: model, cluster and layout. A layout is chosen where it is asked for, or where none is given and the
    /// model's published one does not divide the GPUs; that takes a data set or a batch. Throws Error{input} (also
    /// where the packing is automatic), Error{io}, Error{limit} where no layout fits.
    Job job(std::uint64_t seed, const Executor& execute) const;

    /// The samples of the batch file, without microbatches: all of them, or of a global batch so many that `seed`
    /// draws. Pre: a batch is given. Throws Error{input}, also where the file has fewer, or where all are dropped for
    /// being too long, unless it `may_be_empty`; and Error{io}.
    Batch read(const workloads::Model& of, std::uint64_t seed, bool may_be_empty = false) const;

    /// The job and its batch; `seed` decides what is drawn. Throws as job(), and Error{input} without a batch.
    Request request(std::uint64_t seed, const Executor& execute) const;

    /// Takes what the `asked` of a plan.json says of microbatches, where options say nothing. Throws Error{input}.
    void pack_as(const Json& asked);

    /// What is kept free of memory: what is said, or, automatic, what shapes that vary may take of the allocator where
    /// nothing that the target is launched with has its segments expand. `some`: microbatches of the batch; none: the
    /// model says whether shapes vary. `ranks`: pipeline ranks, where the layout is known; else those of --pp.
    emulator::Headroom headroom_for(const workloads::Model& of, const std::vector<workloads::Microbatch>& some,
                                    const std::optional<std::int64_t>& ranks = {}) const;

    /// Of the batch as many as show whether shapes vary; none without a batch. Throws as read().
    std::vector<workloads::Microbatch> some_microbatches(const workloads::Model& of, std::uint64_t seed) const;

    /// How batches are packed.
    workloads::Packing how_packed() const;

    /// The context parallel GPUs that were asked for: other layouts have as many.
    std::optional<std::int64_t> kept_cp() const { return cp.number; }

    /// Whether all degrees are tried.
    bool is_any_layout() const { return layout_as == automatic; }

    /// The same options with the job's layout and global batch in them: they ask for that layout alone. Pre: `job` is
    /// what they asked for.
    WorkloadOptions with_chosen(const Job& job) const;

    /// The same options asking for the user's own layout, and the batch that was drawn for it; none: none was given
    /// beside --layout auto, it does not fit, or it is the job's. Pre: `job` is what they asked for.
    std::optional<WorkloadOptions> with_own(const Job& job) const;

    /// What is drawn of the data set for one replica of the job: its part of the global batch, or `microbatches`.
    std::int64_t microbatches_of_replica(const Job& job) const;

    /// So many microbatches of the data set.
    workloads::DrawnBatch drawn(const workloads::Model& of, std::uint64_t seed, std::int64_t count) const;

    /// What of a layout is fixed, and the batch to judge others by: the one given, or one that is drawn. Pre: `setup`
    /// and this outlive the answer.
    LayoutRequest layout_request(const emulator::Setup& setup, const std::vector<workloads::Microbatch>& microbatches,
                                 std::uint64_t seed) const;

private:
    void add_layout(OptionTable& options);
    void add_global_batch(OptionTable& options);
    void add_machine(OptionTable& options);
    void add_network(OptionTable& options);
    void add_samples(OptionTable& options);
    void add_headroom(OptionTable& options);
    void add_recipe(OptionTable& options);
    void add_packing(OptionTable& options, bool with_replicas);
    void add_encoders(OptionTable& options);
    void build_encoders(workloads::Model& of) const;
    void add_trained(OptionTable& options);
    void settle_trained(workloads::Model& of) const;
    void settle_adapters(workloads::Model& of) const;
    bool has_lora_apart() const;
    workloads::Cluster found_cluster() const;
    emulator::Layout layout(const emulator::Setup& setup) const;
    std::optional<LayoutAndZero> own(const emulator::Setup& setup) const;
    std::optional<GlobalBatch> global(const emulator::Setup& setup) const;
    workloads::DrawnBatch drawn(const workloads::Model& of, std::uint64_t seed, const GlobalBatch& all,
                                const workloads::Pipelines& pipelines = {}) const;
    bool choose(const emulator::Setup& setup) const;
    void choose_layout(emulator::Setup& setup, Job& job, const Batch* given, const Executor& execute) const;
    emulator::Setup setup(const std::optional<CostFile>& file) const;
    Job job(std::uint64_t seed, const Executor& execute, Batch* given) const;
    void require_one_step(const Batch& given, std::int64_t replicas) const;
};

/// What --model and --cluster are, for commands that need them.
[[nodiscard]] Needed needed_model(const std::string& given);
[[nodiscard]] Needed needed_cluster(const std::string& given);

/// What options of a command say, given what they set: texts that set them again.
template <class Options>
[[nodiscard]] OptionValues values_of(const Options& given) {
    Options own;  // added with its defaults, which values() holds against what it then is
    OptionTable table;
    own.add_to(table);
    own = given;
    return table.values();
}

/// With --headroom auto where nothing is said of it, as plans have it.
[[nodiscard]] inline WorkloadOptions with_automatic_headroom() {
    WorkloadOptions options;
    options.automatic_headroom = options.usual_headroom_is_auto = true;
    return options;
}

/// What --packing may be told: the names of workloads::packings().
[[nodiscard]] std::vector<std::string> packing_names();

/// Adds `--costs`.
void add_costs(OptionTable& options, std::string& path);

/// Adds `--split`.
void add_split(OptionTable& options, std::string& split);

/// What it says; nothing said: automatic.
[[nodiscard]] Split split_of(const std::string& split);

}  // namespace pipeweaver::planner
