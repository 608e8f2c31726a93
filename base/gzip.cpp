#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/files.hpp"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace pipeweaver {

namespace {

constexpr std::size_t zip_block = std::size_t{1} << 18;

struct Inflater {
    z_stream stream{};
    Inflater() {
        constexpr int gzip_only = 16;
        if (inflateInit2(&stream, MAX_WBITS + gzip_only) != Z_OK) fail(ErrorKind::io, "zlib cannot be started");
    }
    ~Inflater() { inflateEnd(&stream); }
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;
};

}  // namespace

std::string gzip(std::string_view bytes, Zip zip) {
    z_stream stream{};
    constexpr int with_gzip_header = 16;
    const int level = zip == Zip::soon ? 1 : 6;  // the best one takes three times as long for 5 % less
    // No deflateSetHeader: zlib then writes no name and a zero time stamp.
    if (deflateInit2(&stream, level, Z_DEFLATED, MAX_WBITS + with_gzip_header, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        fail(ErrorKind::io, "zlib cannot be started");
    std::string out;
    std::string buffer(zip_block, '\0');
    std::size_t taken = 0;
    int status = Z_OK;
    while (status != Z_STREAM_END) {
        const std::size_t size = std::min(bytes.size() - taken, std::size_t{std::numeric_limits<uInt>::max()});
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + taken));
        stream.avail_in = static_cast<uInt>(size);
        do {
            stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
            stream.avail_out = static_cast<uInt>(buffer.size());
            status = deflate(&stream, taken + size == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
            out.append(buffer, 0, buffer.size() - stream.avail_out);
        } while (stream.avail_out == 0);
        taken += size;
    }
    deflateEnd(&stream);
    return out;
}

std::string gunzip(std::string_view bytes, std::size_t limit) {
    Inflater inflater;
    z_stream& stream = inflater.stream;
    constexpr std::size_t usual_ratio = 8, most_at_once = std::size_t{64} << 20;
    std::string out;
    out.reserve(std::min({usual_ratio * bytes.size(), limit, most_at_once}));
    std::string buffer(zip_block, '\0');
    std::size_t taken = 0;
    while (true) {
        const std::size_t size = std::min(bytes.size() - taken, zip_block);
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + taken));
        stream.avail_in = static_cast<uInt>(size);
        stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
        stream.avail_out = static_cast<uInt>(buffer.size());
        const int status = inflate(&stream, Z_NO_FLUSH);
        taken += size - stream.avail_in;
        out.append(buffer, 0, buffer.size() - stream.avail_out);
        if (out.size() > limit) fail(ErrorKind::input, "gzip data is larger than {} bytes when unzipped", limit);
        if (status == Z_STREAM_END) {
            // gzip allows several members one after the other; what follows the last must be one too.
            if (taken == bytes.size()) return out;
            if (inflateReset(&stream) != Z_OK) fail(ErrorKind::input, "gzip data is damaged");
        } else if (status == Z_BUF_ERROR && taken == bytes.size()) {
            fail(ErrorKind::input, "gzip data is cut short");
        } else if (status != Z_OK && status != Z_BUF_ERROR) {
            fail(ErrorKind::input, "gzip data is damaged");
        }
    }
}

}  // namespace pipeweaver
