/* Replaces functions of the C library by functions of ours, in the tables of addresses (GOT) of loaded objects. */
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
    void *original; /* NULL: the function is left alone */
    bool unbound;   /* also in slots that are not bound yet; the loader would bind them to the original */
    bool of_ruby;   /* also in the slots of Ruby's own library */
} pw_stand_in;

typedef struct {
    pw_stand_in *entries;
    int count;
    bool installed;
    /* The last visit's counts: objects visited, objects ever loaded, objects ever unloaded. */
    size_t visited;
    unsigned long long loaded, unloaded;
} pw_stand_ins;

/* Installs our functions in all loaded objects, except Pitwall's own object and objects that contain an original.
 * Any thread may call the functions below. A signal handler must not. */
void pw_stand_ins_install(pw_stand_ins *list);
/* Installs our functions in objects loaded since, if the list is installed. Costs almost nothing when there is no
 * new object. */
void pw_stand_ins_cover_new(pw_stand_ins *list);
/* Puts the originals back. A thread that is in one of our functions stays there until the function returns. Code
 * that kept the address of one of our functions goes on calling it. */
void pw_stand_ins_remove(pw_stand_ins *list);
/* For a forked child: another thread may have been in one of these functions during the fork. */
void pw_stand_ins_in_child(void);

#endif
