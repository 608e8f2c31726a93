#include "pipeweaver/emulator/packed_attention.hpp"

#include "pipeweaver/costdb/database.hpp"

namespace pipeweaver::emulator {

costdb::Attention PackedAttention::question() const { return costdb::equal_batch(shape, {lengths, keys}); }

costdb::Cost PackedAttention::cost(const costdb::CostDatabase& costs) const {
    return costs.packed_attention(shape, {lengths, keys});
}

}  // namespace pipeweaver::emulator
