// pipeweaver costdb explain: why a matrix product costs what it does.
#include "apps/command_line.hpp"
#include "apps/console.hpp"
#include "apps/costdb/costdb_commands.hpp"
#include "apps/costdb/model_products.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text_table.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cmath>

namespace pipeweaver::apps {

namespace {

using costdb::Explanation;
using OrderedJson = nlohmann::ordered_json;

constexpr std::int64_t largest_size = std::int64_t{1} << 32;

// Of a number that nobody needs further digits of.
double shortened(double x) { return std::round(x * 1e4) / 1e4; }

OrderedJson cause_json(const std::optional<costdb::Cause>& cause) {
    return cause ? OrderedJson(name_of(*cause)) : OrderedJson();
}

std::string why(const std::optional<costdb::Cause>& cause) {
    return cause ? std::string(name_of(*cause)) : "no cause known";
}

OrderedJson tiling_json(const std::optional<costdb::Tiling>& tiling) {
    if (!tiling) return {};
    return {
        {"rows", tiling->rows},   {"columns", tiling->columns},        {"parts", tiling->parts},
        {"tiles", tiling->tiles}, {"waves", shortened(tiling->waves)}, {"multiprocessors", tiling->multiprocessors}};
}

OrderedJson product_json(const Explanation& e, const std::string& name, std::int64_t times) {
    return {{"name", name},
            {"times", times},
            {"dtype", name_of(e.product.dtype)},
            {"m", e.product.m},
            {"n", e.product.n},
            {"k", e.product.k},
            {"latency_ns", e.cost.duration.count()},
            {"basis", name_of(e.cost.basis)},
            {"error_percent", shortened(e.cost.error_percent)},
            {"flops", e.flops},
            {"tflops_per_s", shortened(e.tflops_per_s)},
            {"share_of_peak", shortened(e.share_of_peak)},
            {"bound", name_of(e.bound)},
            {"peak_us", shortened(e.peak_us)},
            {"traffic_bytes", e.traffic_bytes},
            {"traffic_us", shortened(e.traffic_us)},
            {"aligned", e.aligned},
            {"tiling", tiling_json(e.tiling)},
            {"losses",
             {{"launch", shortened(e.losses.launch)},
              {"memory", shortened(e.losses.memory)},
              {"wave", shortened(e.losses.wave)},
              {"alignment", shortened(e.losses.alignment)},
              {"kernel", shortened(e.losses.kernel)}}}};
}

OrderedJson faster_json(const FasterSize& f) {
    return {{"axis", f.axis},
            {"from", f.from},
            {"to", f.to},
            {"tflops_per_s", shortened(f.tflops_per_s)},
            {"gain_percent", shortened(100 * f.gain)},
            {"beyond_error", f.beyond_error},
            {"product", f.product},
            {"cause", cause_json(f.cause)}};
}

std::string_view name_of(Experts experts) {
    constexpr std::array<std::string_view, 3> names{"none", "fused", "apart"};
    return names.at(static_cast<std::size_t>(experts));
}

std::int64_t size_of(const costdb::Gemm& product, const std::string& axis) {
    return axis == "m" ? product.m : axis == "n" ? product.n : product.k;
}

// What is faster than one product, as what is faster than a model's.
std::vector<FasterSize> faster_than(const Explanation& here, const costdb::CostDatabase& costs) {
    std::vector<FasterSize> all;
    for (const auto& one : costdb::faster_neighbours(costs, here))
        all.push_back({one.axis, size_of(here.product, one.axis), size_of(one.there.product, one.axis),
                       one.there.tflops_per_s, one.gain, one.beyond_error, "gemm", one.cause});
    return all;
}

// Then waves and tiles lose nothing.
bool is_of_traffic(const Explanation& e) { return e.losses.memory > 1; }

void print_tiles(const Explanation& e) {
    if (!e.tiling) {
        print_text("tiles      nothing is known of them on this device\n");
        return;
    }
    const auto& t = *e.tiling;
    print_text("tiles      {} of {} x {}{} on {} multiprocessors: {:.2f} waves, {}\n", t.tiles, t.rows, t.columns,
               t.parts > 1 ? fmt::format(", k in {} parts,", t.parts) : "", t.multiprocessors, t.waves,
               is_of_traffic(e) ? "shorter than the traffic takes in practice"
                                : fmt::format("the last loses {}", percent(e.losses.wave - 1)));
}

std::string tiles_edges(const Explanation& e) {
    if (!e.tiling) return "nothing is known of tiles";
    if (is_of_traffic(e)) return "tiles cost nothing beside the traffic";
    return fmt::format("tiles are {} larger than the output", percent(e.losses.alignment - 1));
}

void print_product(const Explanation& e, const std::string& device) {
    const auto& p = e.product;
    print_text("gemm {} m {} n {} k {} on {}: {:.1f} us, {}, error {:.1f} %\n", name_of(p.dtype), p.m, p.n, p.k, device,
               1e-3 * static_cast<double>(e.cost.duration.count()), name_of(e.cost.basis), e.cost.error_percent);
    print_text("speed      {:.1f} TFLOP/s, {} of the peak\n", e.tflops_per_s, percent(e.share_of_peak));
    print_text("bound      {}: {:.1f} us at the peak, {:.1f} us of traffic\n", name_of(e.bound), e.peak_us,
               e.traffic_us);
    print_tiles(e);
    print_text("alignment  {}; {}\n", tiles_edges(e),
               e.aligned ? "rows begin at multiples of 16 bytes"
                         : "n or k breaks the 16 bytes that fast kernels load: pad it");
    print_text("fused      no: what follows it is priced as a kernel of its own\n");
}

void print_products(const ModelProducts& all) {
    TextTable rows({{"product", true, 12},
                    {"times", false, 6},
                    {"m", false, 7},
                    {"n", false, 7},
                    {"k", false, 7},
                    {"time", false, 11},
                    {"of the peak", false, 12},
                    {"waves", false, 6},
                    {"bound", true},
                    {"basis", true}});
    for (const auto& one : all.products) {
        const auto& e = one.explained;
        rows.add({one.name, fmt::format("{}", one.times), fmt::format("{}", e.product.m),
                  fmt::format("{}", e.product.n), fmt::format("{}", e.product.k),
                  fmt::format("{:.1f} us", 1e-3 * static_cast<double>(e.cost.duration.count())),
                  percent(e.share_of_peak), e.tiling ? fmt::format("{:.2f}", e.tiling->waves) : "",
                  std::string(name_of(e.bound)), std::string(name_of(e.cost.basis))});
    }
    print_text("{}", rows.text());
    if (all.experts == Experts::fused) print_text("experts    fused: priced as one measured layer, not listed\n");
    if (all.experts == Experts::apart) print_text("experts    not fused: no measured layer is theirs, not listed\n");
}

void print_faster(const std::vector<FasterSize>& faster, double here, bool is_model) {
    if (faster.empty()) print_text("faster     no size near is 0.1 % faster per FLOP\n");
    for (const auto& one : faster)
        print_text("faster     {} {}: {:.1f} TFLOP/s, {:.1f} here, {:.1f} % faster per FLOP{}; {}{}\n", one.axis,
                   one.to, one.tflops_per_s, here, 100 * one.gain, one.beyond_error ? "" : ", within the error",
                   is_model ? one.product + ": " : "", why(one.cause));
}

struct Explain {
    explicit Explain(CLI::App& app) : options(app) {
        options.group("The product");
        options.text("device", device, "DEVICE", "a100_sxm, h100_sxm, h200_sxm, b200, ... or an alias");
        options.require();
        options.integer("m", m, 1, largest_size, "rows: the tokens of a microbatch on one GPU");
        options.integer("n", n, 1, largest_size, "columns of the weights, of one GPU");
        options.integer("k", k, 1, largest_size, "rows of the weights, of one GPU");
        options.choice("dtype", dtype, {costdb::dtype_names().begin(), costdb::dtype_names().end()},
                       "number format (default bf16)");
        options.group("A model's products, in place of --n and --k");
        options.text("model", model, "MODEL", "a model of `pipeweaver list models`, a model file, or hf:CONFIG.json");
        options.text("module", module, "MODULE", "a module of it (default: the backbone)");
        options.integer("tp", tp, 1, 1024, "tensor parallel GPUs (default 1)");
        options.group("The database");
        options.text("database", database, "FILE", "a file of `costdb import` (default: the embedded tables)");
        console.add_to(app);
    }

    void run() {
        options.apply();
        check();
        const auto costs =
            database.empty() ? costdb::CostDatabase::embedded(device) : costdb::CostDatabase::read(database, device);
        if (model.empty())
            explain_product(costs);
        else
            explain_model(costs);
    }

    void check() const {
        if (model.empty()) {
            if (tp || !module.empty())
                fail(ErrorKind::input, "{}: is of a model, must stand beside --model", tp ? "--tp" : "--module");
            require_given({{m.has_value(), "--m N", "rows of the product"},
                           {n.has_value(), "--n N", "columns, or --model MODEL"},
                           {k.has_value(), "--k N", "the inner size, or --model MODEL"}});
            return;
        }
        for (const auto& [given, name] :
             {std::pair{n.has_value(), "--n"}, {k.has_value(), "--k"}, {!dtype.empty(), "--dtype"}})
            if (given) fail(ErrorKind::input, "{}: is given beside --model, whose products have their own", name);
        require_given({{m.has_value(), "--m N", "tokens of a microbatch"}});
    }

    void explain_product(const costdb::CostDatabase& costs) const {
        const auto format = dtype.empty() ? 0 : costdb::index_of("dtype", dtype, costdb::dtype_names());
        costdb::Gemm product;
        product.dtype = static_cast<costdb::Dtype>(format);
        product.m = *m;
        product.n = *n;
        product.k = *k;
        const auto here = costdb::explain(costs, product);
        const auto faster = faster_than(here, costs);
        if (console.json) {
            answer(costs, nullptr, OrderedJson::array({product_json(here, "gemm", 1)}), faster, here.tflops_per_s);
            return;
        }
        print_product(here, costs.device());
        print_faster(faster, here.tflops_per_s, false);
    }

    void explain_model(const costdb::CostDatabase& costs) const {
        const auto found = workloads::find_model(model);
        const auto& part = module_of(found);
        const auto gpus = tp.value_or(1);
        const auto here = products_of(part.architecture, gpus, *m, costs);
        const auto faster = faster_sizes(part.architecture, gpus, *m, here, costs);
        if (console.json) {
            OrderedJson rows = OrderedJson::array();
            for (const auto& one : here.products) rows.push_back(product_json(one.explained, one.name, one.times));
            answer(costs,
                   {{"name", found.name}, {"module", part.name}, {"tp", gpus}, {"experts", name_of(here.experts)}},
                   std::move(rows), faster, here.tflops_per_s);
            return;
        }
        print_text("{} of {} on {}, tp {}, {}, forward\n", part.name, found.name, costs.device(), gpus,
                   plural(*m, "token"));
        print_products(here);
        print_faster(faster, here.tflops_per_s, true);
    }

    const workloads::Module& module_of(const workloads::Model& found) const {
        if (module.empty()) return found.modules.at(found.backbone());
        std::vector<std::string> names;
        for (const auto& one : found.modules) names.push_back(one.name);
        return found.modules.at(costdb::index_of("module", module, names));
    }

    static void answer(const costdb::CostDatabase& costs, OrderedJson of_model, OrderedJson products,
                       const std::vector<FasterSize>& faster, double here) {
        OrderedJson rows = OrderedJson::array();
        for (const auto& one : faster) rows.push_back(faster_json(one));
        print_json({{"format", "pipeweaver-explanation/1"},
                    {"device", costs.device()},
                    {"model", std::move(of_model)},
                    {"products", std::move(products)},
                    {"tflops_per_s", shortened(here)},
                    {"faster", std::move(rows)}});
    }

    Options options;
    Console console;
    std::string device, dtype, model, module, database;
    std::optional<std::int64_t> m, n, k, tp;
};

}  // namespace

void add_costdb_explain(CLI::App& parent) {
    add_command<Explain>(
        parent, "explain", "why a matrix product costs what it does, and which sizes near are faster",
        {.synopsis = "--device DEVICE --m N (--n N --k N | --model MODEL [--tp N]) [OPTION...]",
         .description =
             "Says what a forward matrix product's time rests on, what bounds it, how its tiles lie on the "
             "multiprocessors, and what share of the peak it reaches; then, for each size, the one near that is "
             "fastest per FLOP, with both speeds and the cause: launch, memory, crossover (from memory to compute or "
             "back), wave, alignment, kernel. Near: within an eighth; of n and k, and of tp, half and double, too.\n"
             "Of a model it lists the products of all layers and of the output head, and tries hidden, ffn, vocab and "
             "tp. Traffic between GPUs does not count.",
         .examples = {{"A product", "pipeweaver costdb explain --device a100_sxm --m 3584 --n 2048 --k 1024"},
                      {"The products of a model on four GPUs",
                       "pipeweaver costdb explain --device a100_sxm --model llama3-8b --tp 4 --m 8192"}},
         .see_also = {"pipeweaver costdb query", "docs/explain-costs.md"}});
}

}  // namespace pipeweaver::apps
