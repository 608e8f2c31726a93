// Builds a cost database from tables of measurements, or adds to one.
//
// Tables       CSV with a header, gzip allowed. What a table holds is told by its columns, which must be exactly those
//              of one of these (the latency is in microseconds, above 0 and at most an hour):
//                dtype,m,n,k[,pass],latency_us                                               GEMM; (m,n,k) is the
//                forward's dtype,batch,m,n,k,layout,pass,accumulate,out_dtype,fraction_of_peak,latency_us
//                    GEMM passes, each with the shape it runs: forward (m,n,k), backward_input (m,k,n),
//                    backward_weight (n,k,m); of the weight passes of a shape those with out_dtype fp32 count
//                dtype,batch,seq_len,q_heads,kv_heads,head_dim,causal[,pass],latency_us       attention
//                pass,dtype,batch,seq_len,q_heads,kv_heads,qk_head_dim,v_head_dim,qkv_contiguous,fraction_of_peak
//                    causal attention as a fraction of the device's peak over the operations of full attention,
//                    2 b a s^2 (d_qk + d_v) forward and 2.5 times that backward; those with contiguous qkv count, and
//                    of the head size d_qk
//                collective,dtype,gpus,message_bytes,latency_us                               inside a node
//                collective,gpus,gpus_per_node,message_bytes,latency_us                       16-bit, also across nodes
//                    (collective all_gather, reduce_scatter, all_reduce, alltoall, in the last table also send_recv)
//                dtype,tokens,hidden,ffn,top_k,experts,moe_tp,moe_ep,routing,latency_us       mixture of experts
//                kind,pass,traffic_bytes,latency_us                                          memory-bound work
//                kernel,dtype,batch,seq_len[,hidden,conv_width],k_heads,k_head_dim,v_heads,v_head_dim,latency_us
//                    a forward kernel of a gated delta net in bf16, with heads alone told apart
//              Those without `layout`, `fraction_of_peak` or `gpus_per_node` may have spread_percent too: half the
//              range that nine of ten repetitions lie in. Any table may have source,origin,licence, as `costdb export`
//              writes them: then each point keeps its own.
//              Output of nccl-tests, told by its header line: costdb/import/nccl_tests.hpp. PyTorch traces: trace.hpp.
// Duplicates   equal keys within one table become one point with their median (the lower of two middle ones).
// Outliers     points more than 2 times off the line (in logarithms) between their neighbours along m, seq_len or the
//              message, worst first, each judged without those before it; and GEMMs faster than 1.05 of the device's
//              peak. They are kept and told: what to make of noise is the look-up's matter.
// Adding       what was imported last answers first. A file of the same device and name takes the place of the older;
//              one with the same bytes, device, origin and licence changes nothing.
// Safety       a database is written beside its place and then renamed: whatever stops an import, it is the old or the
//              new one; what is added to one is on the disk before. While one import adds, others wait (flock on the
//              database itself, which ends with its process), up to a minute.
// Database     SQLite, STRICT tables without rowid, whole nanoseconds; application id "PWCD", user_version 3 to 5; a
//              table `source` with device, file, origin, licence and SHA-256 of every table that went in.
// Determinism  equal tables give equal bytes, with any version of SQLite that writes its format 3.
#pragma once

#include "pipeweaver/costdb/trace.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace pipeweaver::costdb {

/// A table to import.
struct TableFile {
    std::filesystem::path path;
    std::string device;   ///< a name or alias of a known device; empty: the file names it (nccl-tests, traces)
    std::string origin;   ///< who measured it, as the database shall tell
    std::string licence;  ///< of the numbers
    const TraceReport* trace = nullptr;  ///< of read_trace(path), if it is a trace
    bool thinned = false;                ///< only what costdb/import/thinning.hpp keeps
    bool throttled = false;              ///< and none of its long products, as the machine had slowed down
};

struct Imported {
    std::size_t tables = 0;
    std::size_t points = 0;             ///< rows of the database
    std::size_t thinned = 0;            ///< rows of large tables that the others tell
    std::size_t duplicates = 0;         ///< rows of tables that were merged into others
    std::size_t replaced = 0;           ///< tables that took the place of an older one
    std::size_t unchanged = 0;          ///< tables that the database has already
    std::vector<std::string> left_out;  ///< files of the folder that are no tables, and rows, with the reason
    std::vector<std::string> outliers;  ///< points that are kept, but look wrong, with the reason
};

/// Writes a new database of these tables to `output` (zipped if it ends in .gz), under a temporary name until it is
/// whole. Throws Error{input} with file, line and column for what is no measurement, Error{io}.
Imported import_tables(const std::vector<TableFile>& tables, const std::filesystem::path& output);

/// Adds these tables to an existing database. Throws as import_tables() does, and Error{input} for a database that is
/// damaged, foreign or newer, Error{io} if it is not there or cannot be replaced; then it is as it was.
Imported add_tables(const std::vector<TableFile>& tables, const std::filesystem::path& database);

/// What a run of a plan says of passes.
struct MeasuredRun {
    std::string device;               ///< canonical
    std::string file;                 ///< the plan that was run; takes the place of an older run of it
    std::string sha256;               ///< of the recordings
    std::vector<PassFactor> factors;  ///< over the tables alone; each takes the place of an older one
};

/// Writes a new database to `output` that has the factors, and all of the database `base` where one is named; may be
/// `base` itself. Throws Error{input} for a base that is damaged, foreign or newer, Error{io}.
void write_measured_run(const MeasuredRun& run, const std::filesystem::path& base, const std::filesystem::path& output);

/// Imports every *.csv and *.csv.gz of `folder`, in the order of names, into a database DEVICE.sqlite.gz for each
/// device in the folder `output`. Device and origin come from the file's name: a100_sxm_*, a100_dgx_*, a100_nccl_* are
/// a100_sxm; h100_sxm_*, h100_dgx_* h100_sxm; h200_sxm_*, a100_pcie_*, b200_*, b300_sxm_*, gb200_*, gb300_* what they
/// say. The large tables of Blackwell are thinned. Throws Error{input} for a table whose name is none of these.
Imported import_folder(const std::filesystem::path& folder, const std::filesystem::path& output);

}  // namespace pipeweaver::costdb
