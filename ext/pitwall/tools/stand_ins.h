/* Functions of ours that stand in for the C library's: loaded objects' tables of addresses (GOT) then hold ours. */
#ifndef PITWALL_STAND_INS_H
#define PITWALL_STAND_INS_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
# define PW_STAND_INS 1
#else
# define PW_STAND_INS 0
#endif

typedef struct {
    const char *name;
    void *ours;
    void *original; /* NULL: this function is left alone */
    bool unbound;   /* also where nobody has looked the name up yet: a lookup would find the original */
    bool of_ruby;   /* also in Ruby's own library */
} pw_stand_in;

typedef struct {
    pw_stand_in *entries;
    int count;
    bool installed;
    /* What the last visit found: so many objects, and how many were ever loaded and unloaded. */
    size_t visited;
    unsigned long long loaded, unloaded;
} pw_stand_ins;

/* In all loaded objects but Pitwall's own and those that have an original. Any thread may call these; not for
 * signal handlers. */
void pw_stand_ins_install(pw_stand_ins *list);
/* In objects loaded since, while they are installed. Costs next to nothing when there is none. */
void pw_stand_ins_cover_new(pw_stand_ins *list);
/* The originals again. Who is in one of ours, or kept its address, goes on there. */
void pw_stand_ins_remove(pw_stand_ins *list);
/* After a fork: another thread may have been in one of these. */
void pw_stand_ins_in_child(void);

#endif
