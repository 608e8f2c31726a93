// Reads a JSON file into nlohmann's document tree, as a reader without a stream would: what tools/bench_import.py compares
// with.
#include <nlohmann/json.hpp>

#include <cstdio>
#include <exception>
#include <fstream>

int main(int count, char** arguments) {
    if (count != 2) return 2;
    try {
        std::ifstream in(arguments[1], std::ios::binary);
        const auto document = nlohmann::json::parse(in);
        std::printf("%zu events\n", document.at("traceEvents").size());
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 3;
    }
}
