// Makes reads and writes of chosen files fail: DTDEBUG_FAULT is PART:ERRNO, where PART is in the name of the file.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <sys/uio.h>
#include <unistd.h>

static bool is_chosen(int fd) {
    const char *fault = getenv("DTDEBUG_FAULT");
    const char *colon = fault ? strrchr(fault, ':') : nullptr;
    if (!colon) return false;
    char name[4096];
    std::string link = "/proc/self/fd/" + std::to_string(fd);
    ssize_t size = readlink(link.c_str(), name, sizeof name - 1);
    if (size < 0) return false;
    name[size] = 0;
    if (!strstr(name, std::string(fault, colon - fault).c_str())) return false;
    errno = atoi(colon + 1);
    return true;
}

template <class F> static F real(const char *name) { return reinterpret_cast<F>(dlsym(RTLD_NEXT, name)); }

extern "C" {
ssize_t read(int fd, void *to, size_t size) {
    static auto next = real<ssize_t (*)(int, void *, size_t)>("read");
    return is_chosen(fd) ? -1 : next(fd, to, size);
}
ssize_t write(int fd, const void *from, size_t size) {
    static auto next = real<ssize_t (*)(int, const void *, size_t)>("write");
    return is_chosen(fd) ? -1 : next(fd, from, size);
}
}
