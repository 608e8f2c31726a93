#include "pipeweaver/loader/replay.hpp"

#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

namespace pipeweaver::loader {

namespace {

// The packs as a worker meets them that gathers a window of samples first: the first of a window has the work of all.
std::vector<Pack> gathered(std::vector<Pack> packs, const Queue& queue) {
    if (!queue.window) return packs;
    const auto workers = static_cast<std::size_t>(std::max<std::int64_t>(queue.workers, 1));
    for (std::size_t worker = 0; worker < std::min(workers, packs.size()); ++worker) {
        std::size_t first = worker;
        std::int64_t samples = packs[first].samples;
        for (std::size_t i = worker + workers; i < packs.size(); i += workers) {
            if (samples >= *queue.window) {
                first = i;
                samples = packs[i].samples;
                continue;
            }
            samples += packs[i].samples;
            auto& into = packs[first].pieces;
            into.insert(into.end(), packs[i].pieces.begin(), packs[i].pieces.end());
            packs[i].pieces.clear();
        }
    }
    return packs;
}

// With a core for each worker it is of no account which pieces of a pack need one.
std::vector<Pack> in_one_piece(std::vector<Pack> packs, const Queue& queue) {
    if (queue.cores && *queue.cores < queue.workers) return packs;
    for (Pack& pack : packs) {
        Duration sum{};
        for (const Piece& piece : pack.pieces) sum += piece.time;
        pack.pieces.assign(1, {sum, false});
    }
    return packs;
}

Duration work_of(const Pack& pack) {
    Duration sum = pack.copy;
    for (const Piece& piece : pack.pieces) sum += piece.time;
    return sum;
}

enum class Ended : std::uint8_t { piece, copy, gpu };

struct Event {
    Duration at{};
    std::size_t replica = 0;
    Ended what = Ended::piece;
    std::size_t worker = 0;

    bool operator>(const Event& other) const {
        return std::tie(at, replica, what, worker) > std::tie(other.at, other.replica, other.what, other.worker);
    }
};

using Events = std::priority_queue<Event, std::vector<Event>, std::greater<>>;

// The workers and the copy engine of one replica: which packs are ready when.
class Workers {
public:
    Workers(const Queue& queue, std::vector<Pack> packs, std::size_t replica)
        : packs_(std::move(packs)),
          replica_(replica),
          count_(static_cast<std::size_t>(queue.workers)),
          cores_(static_cast<std::size_t>(queue.cores.value_or(queue.workers))),
          may_begin_(count_ * static_cast<std::size_t>(queue.prefetch)),
          ready_(packs_.size(), 0) {
        for (std::size_t w = 0; w < count_; ++w) {
            workers_.push_back({.pack = w});
            may_go_on_.push_back(w);
        }
    }

    bool loads_itself() const { return count_ == 0; }
    const Pack& pack(std::size_t i) const { return packs_[i]; }
    bool is_ready(std::size_t i) const { return ready_[i] != 0; }

    // One more may be made for each that is taken.
    void take() {
        if (count_ > 0) may_go_on_.push_back(may_begin_ % count_);
        ++may_begin_;
    }

    void end_piece(std::size_t w) {
        Worker& worker = workers_[w];
        if (packs_[worker.pack].pieces[worker.piece].core) ++cores_;
        ++worker.piece;
        worker.busy = false;
        may_go_on_.push_back(w);
    }

    void end_copy() {
        ready_[copying_.begin()->second] = 1;
        copying_.erase(copying_.begin());
        is_copying_ = false;
    }

    // Whether any worker went on.
    bool advance(Duration now, Events& events) {
        bool any = false;
        for (const std::size_t w : std::exchange(may_go_on_, {})) any = advance_one(w, now, events) || any;
        return any;
    }

    // Once all that ends at this instant has ended.
    void begin_waiting(Duration now, Events& events) {
        while (cores_ > 0 && !waiting_.empty()) {
            const std::size_t w = waiting_.begin()->second;
            waiting_.erase(waiting_.begin());
            --cores_;
            events.push({now + piece_of(w).time, replica_, Ended::piece, w});
        }
        if (is_copying_ || copying_.empty()) return;
        is_copying_ = true;
        events.push({now + packs_[copying_.begin()->second].copy, replica_, Ended::copy, 0});
    }

private:
    struct Worker {
        std::size_t pack = 0, piece = 0;
        bool busy = false;
    };

    const Piece& piece_of(std::size_t w) const { return packs_[workers_[w].pack].pieces[workers_[w].piece]; }

    // To its next piece, to the end of its pack, or not at all.
    bool advance_one(std::size_t w, Duration now, Events& events) {
        Worker& worker = workers_[w];
        bool any = false;
        while (!worker.busy && worker.pack < std::min(may_begin_, packs_.size())) {
            any = true;
            if (worker.piece == packs_[worker.pack].pieces.size()) {
                finish(worker, now);
            } else if (piece_of(w).time == Duration{}) {
                ++worker.piece;
            } else {
                worker.busy = true;
                if (piece_of(w).core)
                    waiting_.insert({now, w});
                else
                    events.push({now + piece_of(w).time, replica_, Ended::piece, w});
            }
        }
        return any;
    }

    void finish(Worker& worker, Duration now) {
        if (packs_[worker.pack].copy == Duration{})
            ready_[worker.pack] = 1;
        else
            copying_.insert({now, worker.pack});
        worker = {.pack = worker.pack + count_};
    }

    std::vector<Pack> packs_;
    std::size_t replica_, count_, cores_, may_begin_;
    std::vector<char> ready_;
    std::vector<Worker> workers_;
    std::vector<std::size_t> may_go_on_;                  // workers whose piece ended, or that may begin one more
    std::set<std::pair<Duration, std::size_t>> waiting_;  // for a core: since when, which worker
    std::set<std::pair<Duration, std::size_t>> copying_;  // since when, which pack; the first is under way
    bool is_copying_ = false;
};

// Where the GPUs of a replica are in their step.
struct Gpus {
    enum class At : std::uint8_t { taking, loading, together, computing, end };
    At at = At::taking;
    std::size_t next_pack = 0, microbatch = 0;
    std::size_t still_to_take = 0;
    Duration since{};  // that they take packs
};

class Replaying {
public:
    Replaying(const Queue& queue, const Taking& taking, const std::vector<Replica>& replicas)
        : taking_(taking), replicas_(replicas), gpus_(replicas.size()) {
        for (std::size_t r = 0; r < replicas.size(); ++r)
            workers_.emplace_back(queue, in_one_piece(gathered(replicas[r].packs, queue), queue), r);
    }

    std::vector<Step> run() {
        if (replicas_.front().steps.empty()) return {};
        begin_step(Duration{});
        settle(Duration{});
        while (!events_.empty()) {
            const Duration now = events_.top().at;
            while (!events_.empty() && events_.top().at == now) {
                apply(events_.top());
                events_.pop();
            }
            settle(now);
        }
        PIPEWEAVER_ASSERT(step_ == replicas_.front().steps.size());
        return std::move(steps_);
    }

private:
    void apply(const Event& event) {
        touched_.insert(event.replica);
        if (event.what == Ended::piece) {
            workers_[event.replica].end_piece(event.worker);
        } else if (event.what == Ended::copy) {
            workers_[event.replica].end_copy();
        } else if (gpus_[event.replica].at == Gpus::At::loading) {
            take(event.replica);
            gpus_[event.replica].at = Gpus::At::taking;
        } else {
            computed(event.replica, event.at);
        }
    }

    // The GPUs are done with a microbatch.
    void computed(std::size_t r, Duration now) {
        Gpus& gpus = gpus_[r];
        if (++gpus.microbatch == replicas_[r].steps[step_].size()) {
            arrive(r, Gpus::At::end);
        } else {
            gpus.at = Gpus::At::taking;
            want(r, now);
        }
    }

    void arrive(std::size_t r, Gpus::At where) {
        gpus_[r].at = where;
        ++arrived_;
    }

    // Whether all replicas are where one waits for the others.
    bool all_arrived() {
        if (arrived_ < gpus_.size()) return false;
        arrived_ = 0;
        return true;
    }

    void want(std::size_t r, Duration now) {
        Gpus& gpus = gpus_[r];
        gpus.since = now;
        if (!taking_.whole_step) gpus.still_to_take = 1;
        if (taking_.whole_step && gpus.microbatch == 0) gpus.still_to_take = replicas_[r].steps[step_].size();
    }

    void take(std::size_t r) {
        Gpus& gpus = gpus_[r];
        ++gpus.next_pack;
        --gpus.still_to_take;
        workers_[r].take();
    }

    void begin_step(Duration now) {
        steps_.push_back({now, now, std::vector<Duration>(replicas_.size())});
        for (std::size_t r = 0; r < replicas_.size(); ++r) {
            gpus_[r].microbatch = 0;
            gpus_[r].at = Gpus::At::taking;
            want(r, now);
            touched_.insert(r);
        }
    }

    // What can go on at this instant goes on, until nothing can.
    void settle(Duration now) {
        std::set<std::size_t> all;
        while (!touched_.empty()) {
            const std::size_t r = *touched_.begin();
            touched_.erase(touched_.begin());
            all.insert(r);
            while (advance_gpus(r, now) || workers_[r].advance(now, events_)) {
            }
        }
        for (const std::size_t r : all) workers_[r].begin_waiting(now, events_);
    }

    bool advance_gpus(std::size_t r, Duration now) {
        Gpus& gpus = gpus_[r];
        if (gpus.at == Gpus::At::end) return end_step(now);
        if (gpus.at == Gpus::At::together) return begin_together(now);
        if (gpus.at != Gpus::At::taking) return false;
        if (gpus.still_to_take > 0) return take_or_load(r, now);
        steps_.back().waited[r] += now - gpus.since;
        if (taking_.microbatches_together)
            arrive(r, Gpus::At::together);
        else
            compute(r, now);
        return true;
    }

    bool take_or_load(std::size_t r, Duration now) {
        Gpus& gpus = gpus_[r];
        const bool itself = workers_[r].loads_itself();
        const Duration work = itself ? work_of(workers_[r].pack(gpus.next_pack)) : Duration{};
        if (work > Duration{}) {
            events_.push({now + work, r, Ended::gpu, 0});
            gpus.at = Gpus::At::loading;
            return false;
        }
        if (!itself && !workers_[r].is_ready(gpus.next_pack)) return false;
        take(r);
        return true;
    }

    void compute(std::size_t r, Duration now) {
        const Duration time = replicas_[r].steps[step_][gpus_[r].microbatch];
        gpus_[r].at = Gpus::At::computing;
        if (time > Duration{})
            events_.push({now + time, r, Ended::gpu, 0});
        else
            computed(r, now);
    }

    bool begin_together(Duration now) {
        if (!all_arrived()) return false;
        for (std::size_t r = 0; r < gpus_.size(); ++r) {
            touched_.insert(r);
            compute(r, now);
        }
        return true;
    }

    bool end_step(Duration now) {
        if (!all_arrived()) return false;
        steps_.back().end = now;
        if (++step_ == replicas_.front().steps.size()) return false;
        begin_step(now);
        return true;
    }

    const Taking& taking_;
    const std::vector<Replica>& replicas_;
    std::vector<Workers> workers_;
    std::vector<Gpus> gpus_;
    std::vector<Step> steps_;
    Events events_;
    std::set<std::size_t> touched_;
    std::size_t step_ = 0, arrived_ = 0;
};

}  // namespace

std::vector<Step> replay(const Queue& queue, const Taking& taking, const std::vector<Replica>& replicas) {
    PIPEWEAVER_ASSERT(!replicas.empty() && queue.workers >= 0 && queue.prefetch >= 1);
    PIPEWEAVER_ASSERT(queue.cores.value_or(1) >= 1);
    return Replaying(queue, taking, replicas).run();
}

}  // namespace pipeweaver::loader
