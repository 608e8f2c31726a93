// What was worked out of stages before: by steps of other cuts, which share most of their stages, and by other searches
// for the same batch.
//
// Threads      any number may ask at once; two may work at one question at once, to the same answer.
// Size         bounded: a part that is full begins anew.
// Pre          as LayerStore, whose it is.
#pragma once

#include "pipeweaver/base/random.hpp"
#include "pipeweaver/emulator/pass_cost.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pipeweaver::emulator {

struct StageHash {
    template <class Words>
    std::size_t operator()(const Words& words) const {
        std::uint64_t state = words.size();
        for (const std::int64_t word : words) state = mix(state ^ static_cast<std::uint64_t>(word));
        return static_cast<std::size_t>(state);
    }
};

/// Values by their names, in parts that each thread locks alone.
template <class Name, class Value>
class Remembered {
public:
    /// Of so many values at most.
    explicit Remembered(std::size_t most) : most_of_part_(most / count + 1) {}

    /// The value of that name; where it has none yet, what `make` returns.
    template <class Make>
    Value of(const Name& name, const Make& make) {
        Part& part = parts_[StageHash{}(name) % parts_.size()];
        const std::scoped_lock lock(part.mutex);
        if (const auto found = part.known.find(name); found != part.known.end()) return found->second;
        if (part.known.size() >= most_of_part_) part.known.clear();
        return part.known.emplace(name, make()).first->second;
    }

private:
    static constexpr std::size_t count = 16;
    struct Part {
        std::mutex mutex;
        std::unordered_map<Name, Value, StageHash> known;
    };
    std::array<Part, count> parts_;
    std::size_t most_of_part_;
};

/// A question about a pass of one unit through one stage, and its answer.
template <class Answer>
struct KnownOf {
    std::int64_t asked = 0;
    Answer answer{};
};

/// What is known of the passes of one unit through one stage: few answers, looked through from the front.
class KnownStage {
public:
    template <class Answer, class Work>
    Answer of(std::vector<KnownOf<Answer>> KnownStage::*answers, std::int64_t asked, const Work& work) {
        const auto find = [&]() -> const Answer* {
            for (const KnownOf<Answer>& one : this->*answers)
                if (one.asked == asked) return &one.answer;
            return nullptr;
        };
        {
            const std::scoped_lock lock(mutex_);
            if (const Answer* known = find()) return *known;
        }
        Answer answer = work();
        const std::scoped_lock lock(mutex_);
        if (find() == nullptr) (this->*answers).push_back({asked, answer});
        return answer;
    }

    /// Held, forward_transient, transient, input_transient and kept of a PassMemory.
    using Held = std::array<Bytes, 5>;

    std::vector<KnownOf<PassCost>> costs;
    std::vector<KnownOf<Duration>> times;
    std::vector<KnownOf<Held>> memory;

private:
    std::mutex mutex_;
};

class StageStore {
public:
    /// What a stage is called by: its unit, the layouts of modules, then module, first layer and layers of each part.
    struct Name {
        static constexpr std::size_t most = 11;
        std::array<std::int64_t, most> words{};
        std::size_t count = 0;

        bool has_room(std::size_t more) const { return count + more <= most; }
        void add(std::int64_t word) { words[count++] = word; }
        std::size_t size() const { return count; }
        const std::int64_t* begin() const { return words.data(); }
        const std::int64_t* end() const { return words.data() + count; }

        friend bool operator==(const Name& a, const Name& b) {
            return std::equal(a.begin(), a.end(), b.begin(), b.end());
        }
    };

    /// Of about so many bytes.
    explicit StageStore(std::size_t capacity)
        : numbers_(capacity / bytes_of_stage), stages_(capacity / bytes_of_stage) {}

    /// A number for what would make names long: equal words that are known have equal ones, and no others.
    std::int64_t number_of(const std::vector<std::int64_t>& words) {
        return numbers_.of(words, [&] { return next_++; });
    }

    std::shared_ptr<KnownStage> stage(const Name& name) {
        return stages_.of(name, [] { return std::make_shared<KnownStage>(); });
    }

private:
    static constexpr std::size_t bytes_of_stage = 8192;  // with what its unit is named by, at most for usual menus

    Remembered<std::vector<std::int64_t>, std::int64_t> numbers_;
    Remembered<Name, std::shared_ptr<KnownStage>> stages_;
    std::atomic<std::int64_t> next_ = 0;
};

}  // namespace pipeweaver::emulator
