// Independent items, each taken by whichever thread is free. Never compiled alone.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

struct Threads {
    int64_t count;
    // GOMP_parallel of the OpenMP runtime that torch runs on, or null: torch's own threads, awake since its last call.
    // New ones would share the cores with them, for they spin a while after every attention.
    void (*pool)(void (*)(void*), void*, unsigned, unsigned);
};

// work(item, room) for each item below `total`; a thread makes its own room. A machine that refuses threads gets one.
template <class Make, class Work>
static void each_item(const Threads& threads, int64_t total, Make make, Work work) {
    std::atomic<int64_t> next{0};
    auto help = [&] {
        auto room = make();
        for (int64_t item = next++; item < total; item = next++) work(item, room);
    };
    const int64_t count = std::max<int64_t>(1, std::min(threads.count, total));
    if (count == 1) return help();
    if (threads.pool)
        return threads.pool([](void* f) { (*static_cast<decltype(help)*>(f))(); }, &help, unsigned(count), 0);
    std::vector<std::thread> others;
    try {
        for (int64_t i = 1; i < count; i++) others.emplace_back(help);
    } catch (const std::system_error&) {
        // fewer hands, the same work
    }
    help();
    for (auto& other : others) other.join();
}
