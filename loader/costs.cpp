// Which loaders ship, and where their rates are from.
#include "pipeweaver/loader/loader.hpp"

namespace pipeweaver::loader {

namespace {

using namespace std::chrono_literals;

// Photos as ImageNet's, of 108 kB and 0.18 megapixels; clips of 4 Mbit/s, assumed.
constexpr double jpeg_bytes_per_megapixel = 600'000, clip_bytes_per_second = 500'000;

struct Storage {
    const char* name;
    Duration latency;         // of each file
    double bytes_per_second;  // of one that reads
    const char* source;
};

constexpr Storage storages[] = {
    {"disk", 0ns, 6.5e9, "Samsung PM9A3: 6,500 MB/s in sequence; its latency is not counted"},
    {"nfs", 250us, 500 * 1048576.0, "Amazon EFS, General Purpose: from 250 us a read, 500 MiB/s a client"},
    {"object-store", 150ms, 85e6, "Amazon S3: 100-200 ms to the first byte, 85-90 MB/s a request"}};

Duration read_time(double bytes, const Storage& storage) {
    return Duration{static_cast<std::int64_t>(bytes / storage.bytes_per_second * 1e9 + 0.5)};
}

Stage reading(const Storage& storage) {
    Stage read{"read", On::storage, {}, storage.source};
    read.rates.image = read.rates.clip = storage.latency;
    read.rates.megapixel = read_time(jpeg_bytes_per_megapixel, storage);
    read.rates.clip_second = read_time(clip_bytes_per_second, storage);
    return read;
}

// 577 photos of 0.18 megapixels a second; 300 frames of 1280 x 720, ten seconds, in 828 ms.
Stage decoding() {
    Stage decode{"decode",
                 On::core,
                 {},
                 "imread_benchmark: ImageNet's photos by Pillow on a Xeon 8581C; torchcodec #1028: H.264 of 720p"};
    decode.rates.megapixel = 9'630us;
    decode.rates.clip_second = 82'800us;
    return decode;
}

// 2.7 MiB/s of English, 4.2 bytes a token.
Stage tokenizing() {
    Stage tokenize{"tokenize",
                   On::core,
                   {},
                   "Hugging Face tokenizers from Python, GPT-2's vocabulary, on an EPYC (IREE's benchmark)"};
    tokenize.rates.token = 1'500ns;
    return tokenize;
}

}  // namespace

const std::vector<Loader>& loaders() {
    static const std::vector<Loader> all = [] {
        std::vector<Loader> made;
        for (const Storage& storage : storages)
            made.push_back({storage.name, Queue{}, Taking{}, {reading(storage), decoding(), tokenizing()}});
        return made;
    }();
    return all;
}

}  // namespace pipeweaver::loader
