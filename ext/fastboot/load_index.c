#include "load_index.h"

#include <ruby/encoding.h>
#include <ruby/st.h>
#include <ruby/util.h>

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "places.h"
#include "tools.h"

/*
 * Which names the folders of $LOAD_PATH have at their top. Nothing here runs Ruby code or lets go of the GVL, so an
 * index needs no lock, although `require` runs in all threads and in traps.
 */

#define NOT_IN_PATH UINT32_MAX

/* A folder as it was listed. */
struct folder {
    char *path;                  /* real path. Ruby searches the real folder, too */
    int fixed;                   /* checked for changes only before a LoadError; other folders at each search */
    int is_there;                /* 0: there was no folder */
    int settled;                 /* a change since then would have given it other times */
    struct fb_attributes state;  /* when it was listed */
    struct names {
        char **list;             /* sorted */
        size_t count;
    } names;
    uint32_t rank;               /* its first place in the load path, or NOT_IN_PATH */
};

/* The folders that have a name. */
struct holders {
    uint32_t count, capacity;
    uint32_t *folders;
};

struct index {
    VALUE taken;        /* an Array with the elements of $LOAD_PATH */
    int usable;         /* 0: Ruby searches itself */
    int stale;          /* 1: take $LOAD_PATH again */
    struct folder *folders;
    uint32_t folder_count, folder_capacity;
    uint32_t *ranked;   /* the load path as folders */
    uint32_t ranked_count;
    st_table *by_entry; /* an element's text -> its folder */
    st_table *by_name;  /* a name -> struct holders * */
};

static void
index_mark(void *data)
{
    const struct index *index = data;
    rb_gc_mark(index->taken);
}

static size_t
index_memsize(const void *data)
{
    const struct index *index = data;
    return sizeof *index + index->folder_capacity * sizeof *index->folders;
}

/* It lives as long as the process. */
static const rb_data_type_t index_type = {
    "pitwall/fastboot load index", {index_mark, RUBY_NEVER_FREE, index_memsize}, NULL, NULL, 0,
};

static struct index *
index_of(VALUE self)
{
    return rb_check_typeddata(self, &index_type);
}

static VALUE
index_allocate(VALUE class)
{
    struct index *index;
    VALUE self = TypedData_Make_Struct(class, struct index, &index_type, index);
    index->stale = 1;
    index->taken = Qnil;
    index->by_entry = st_init_strtable();
    index->by_name = st_init_strtable();
    return self;
}

/* ---- Listing folders ---- */

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
free_names(struct names *names)
{
    for (size_t i = 0; i < names->count; i++) free(names->list[i]);
    free(names->list);
    *names = (struct names){0};
}

static int
add_name(struct names *names, const char *name)
{
    if ((names->count & (names->count - 1)) == 0) { /* full: its capacity is a power of two */
        size_t capacity = names->count ? names->count * 2 : 1;
        char **list = realloc(names->list, capacity * sizeof *list);
        if (!list) return 0;
        names->list = list;
    }
    char *copy = strdup(name);
    if (!copy) return 0;
    names->list[names->count++] = copy;
    return 1;
}

/* Returns 0, or errno. */
static int
read_names(const char *path, struct names *names)
{
    *names = (struct names){0};
    DIR *stream = opendir(path);
    if (!stream) return errno == ENOENT || errno == ENOTDIR ? 0 : errno;

    int failure = 0;
    for (;;) {
        errno = 0;
        const struct dirent *found = readdir(stream);
        if (!found) {
            failure = errno;
            break;
        }
        if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0) continue;
        if (!add_name(names, found->d_name)) {
            failure = ENOMEM;
            break;
        }
    }
    closedir(stream);
    if (failure) free_names(names);
    else if (names->count) qsort(names->list, names->count, sizeof *names->list, compare_names);
    return failure;
}

static int
same_names(const struct names *a, const struct names *b)
{
    if (a->count != b->count) return 0;
    for (size_t i = 0; i < a->count; i++) {
        if (strcmp(a->list[i], b->list[i]) != 0) return 0;
    }
    return 1;
}

/* Returns whether there is a folder. */
static int
state_of(const char *path, struct fb_attributes *state)
{
    struct stat found;
    *state = (struct fb_attributes){0};
    if (stat(path, &found) != 0 || !S_ISDIR(found.st_mode)) return 0;
    *state = fb_attributes_of(&found);
    return 1;
}

/* Would a change from now on give the folder other times? */
static int
is_settled(const struct fb_attributes *state)
{
    struct fb_attributes last = *state;
    if (last.mtime_ns > last.ctime_ns) last.ctime_ns = last.mtime_ns;
    return fb_settled(&last, fb_now_ns());
}

static int
has_state(const struct folder *folder, int is_there, const struct fb_attributes *state)
{
    return is_there == folder->is_there && fb_attributes_equal(state, &folder->state);
}

/* Has the folder the names that it was listed with? If the folder had changed just before it was listed, equal times
 * prove nothing: another file may have come at the same tick of the clock. */
static int
is_same(const struct folder *folder)
{
    struct fb_attributes state;
    int is_there = state_of(folder->path, &state);
    if (!has_state(folder, is_there, &state)) return 0;
    if (folder->settled) return 1;
    if (is_settled(&state)) return 0; /* list it once more, then it is settled */

    struct names now;
    if (read_names(folder->path, &now) != 0) return 0;
    int same = same_names(&now, &folder->names);
    free_names(&now);
    return same;
}

static struct holders *
holders_of(const struct index *index, const char *name)
{
    st_data_t found;
    return st_lookup(index->by_name, (st_data_t)name, &found) ? (struct holders *)found : NULL;
}

static void
add_holder(struct index *index, const char *name, uint32_t folder)
{
    struct holders *holders = holders_of(index, name);
    if (!holders) {
        holders = ZALLOC(struct holders);
        st_insert(index->by_name, (st_data_t)ruby_strdup(name), (st_data_t)holders);
    }
    if (holders->count == holders->capacity) {
        uint32_t capacity = holders->capacity ? holders->capacity * 2 : 2;
        REALLOC_N(holders->folders, uint32_t, capacity);
        holders->capacity = capacity;
    }
    holders->folders[holders->count++] = folder;
}

static void
remove_holder(struct index *index, const char *name, uint32_t folder)
{
    struct holders *holders = holders_of(index, name);
    for (uint32_t i = 0; holders && i < holders->count; i++) {
        if (holders->folders[i] == folder) holders->folders[i--] = holders->folders[--holders->count];
    }
}

/* Lists the folder again. Returns 0, or errno. */
static int
list_folder(struct index *index, uint32_t number)
{
    struct folder *folder = &index->folders[number];
    for (size_t i = 0; i < folder->names.count; i++) remove_holder(index, folder->names.list[i], number);
    free_names(&folder->names);

    folder->is_there = state_of(folder->path, &folder->state);
    folder->settled = !folder->is_there || is_settled(&folder->state); /* as of now, before it is listed */
    int failure = folder->is_there ? read_names(folder->path, &folder->names) : 0;
    if (failure) folder->state = (struct fb_attributes){0}; /* list it again next time */
    for (size_t i = 0; i < folder->names.count; i++) add_holder(index, folder->names.list[i], number);
    return failure;
}

/* ---- Taking $LOAD_PATH ---- */

/* Is the path one of these folders, or below one? */
static int
is_below(const char *path, VALUE roots)
{
    for (long i = 0; i < RARRAY_LEN(roots); i++) {
        VALUE root = RARRAY_AREF(roots, i);
        if (!RB_TYPE_P(root, T_STRING)) continue;
        size_t length = (size_t)RSTRING_LEN(root);
        if (length == 0 || strncmp(path, RSTRING_PTR(root), length) != 0) continue;
        if (path[length] == 0 || path[length] == '/') return 1;
    }
    return 0;
}

static uint32_t
new_folder(struct index *index)
{
    if (index->folder_count == index->folder_capacity) {
        uint32_t capacity = index->folder_capacity ? index->folder_capacity * 2 : 256;
        REALLOC_N(index->folders, struct folder, capacity);
        index->folder_capacity = capacity;
    }
    index->folders[index->folder_count] = (struct folder){.rank = NOT_IN_PATH};
    return index->folder_count++;
}

/* The folder of an element of $LOAD_PATH, as it is now. Returns 0, or errno. */
static int
take_entry(struct index *index, const char *entry, VALUE roots, uint32_t *number)
{
    st_data_t known;
    int is_known = st_lookup(index->by_entry, (st_data_t)entry, &known);
    if (is_known) *number = (uint32_t)known;
    if (is_known && index->folders[*number].fixed) return 0;

    char real[PATH_MAX];
    if (strlen(entry) >= sizeof real) return ENAMETOOLONG;
    if (fb_is_plain_folder(entry) || !realpath(entry, real)) strcpy(real, entry);
    if (is_known && strcmp(index->folders[*number].path, real) == 0) {
        return is_same(&index->folders[*number]) ? 0 : list_folder(index, *number);
    }
    char *path = strdup(real);
    if (!path) return ENOMEM;
    *number = new_folder(index);
    index->folders[*number].path = path;
    int failure = list_folder(index, *number);
    if (failure) { /* next time it is not known either */
        free(path);
        index->folder_count--;
        return failure;
    }
    index->folders[*number].fixed = is_below(path, roots);
    st_insert(index->by_entry, (st_data_t)(is_known ? entry : ruby_strdup(entry)), *number);
    return 0;
}

static int
is_plain_entry(VALUE entry)
{
    if (!RB_TYPE_P(entry, T_STRING) || RSTRING_LEN(entry) == 0 || RSTRING_PTR(entry)[0] != '/') return 0;
    return rb_enc_str_asciionly_p(entry) && !memchr(RSTRING_PTR(entry), 0, (size_t)RSTRING_LEN(entry));
}

/* take($LOAD_PATH, roots) -> true; false: an element is no absolute path; or a String: why it can't be used. Folders
 * below the roots are fixed. */
static VALUE
index_take(VALUE self, VALUE load_path, VALUE roots)
{
    struct index *index = index_of(self);
    Check_Type(load_path, T_ARRAY);
    Check_Type(roots, T_ARRAY);
    index->usable = 0;
    index->stale = 1;
    fb_forget_folders(); /* one may have become a link */
    /* Both then share their elements, until the program changes $LOAD_PATH. */
    RB_OBJ_WRITE(self, &index->taken, rb_ary_replace(rb_ary_new(), load_path));
    for (uint32_t i = 0; i < index->ranked_count; i++) index->folders[index->ranked[i]].rank = NOT_IN_PATH;
    index->ranked_count = 0;
    REALLOC_N(index->ranked, uint32_t, RARRAY_LEN(index->taken) + 1);
    for (long i = 0; i < RARRAY_LEN(index->taken); i++) {
        VALUE entry = RARRAY_AREF(index->taken, i);
        if (!is_plain_entry(entry)) {
            index->stale = 0;
            return Qfalse;
        }
        uint32_t number;
        int failure = take_entry(index, StringValueCStr(entry), roots, &number);
        if (failure == EACCES) index->stale = 0; /* it stays so. Other failures may pass. */
        if (failure) return rb_sprintf("%"PRIsVALUE": %s", entry, strerror(failure));
        if (index->folders[number].rank != NOT_IN_PATH) continue; /* listed twice */
        index->folders[number].rank = index->ranked_count;
        index->ranked[index->ranked_count++] = number;
    }
    index->usable = 1;
    index->stale = 0;
    return Qtrue;
}

int
fb_index_taken(VALUE self, VALUE load_path)
{
    const struct index *index = index_of(self);
    if (index->stale || RARRAY_LEN(load_path) != RARRAY_LEN(index->taken)) return 0;
    /* Compared by place, as Ruby does: a change that leaves the same elements has Ruby look at all folders again. */
    return RARRAY_CONST_PTR(load_path) == RARRAY_CONST_PTR(index->taken);
}

/* ---- Searching ---- */

enum found { NOT_FOUND, FOUND, IN_DOUBT };

/* Have the folders before this rank the names that they were listed with? Looks only at those that are fixed, or only
 * at the others. */
static int
is_fresh(struct index *index, uint32_t rank, int fixed)
{
    for (uint32_t i = 0; i < rank; i++) {
        struct folder *folder = &index->folders[index->ranked[i]];
        if (folder->fixed != fixed || is_same(folder)) continue;
        folder->fixed = 0; /* it does change */
        index->stale = 1;
        return 0;
    }
    return 1;
}

/* The holder with the lowest rank from `least` on; NOT_IN_PATH: none. */
static uint32_t
next_rank(const struct index *index, const struct holders *holders, uint32_t least)
{
    uint32_t best = NOT_IN_PATH;
    for (uint32_t i = 0; i < holders->count; i++) {
        uint32_t rank = index->folders[holders->folders[i]].rank;
        if (rank >= least && rank < best) best = rank;
    }
    return best;
}

/* Looks for a file in the folders that have the first part of its name. */
static enum found
search_file(struct index *index, const char *file, char path[PATH_MAX], int *own_real_path)
{
    char first[NAME_MAX + 1];
    size_t length = strcspn(file, "/");
    if (length > NAME_MAX) return IN_DOUBT;
    memcpy(first, file, length);
    first[length] = 0;

    const struct holders *holders = holders_of(index, first);
    uint32_t rank = holders ? next_rank(index, holders, 0) : NOT_IN_PATH;
    for (; rank != NOT_IN_PATH; rank = next_rank(index, holders, rank + 1)) {
        const struct folder *folder = &index->folders[index->ranked[rank]];
        size_t folder_length = strlen(folder->path), file_length = strlen(file);
        if (folder_length + 1 + file_length >= PATH_MAX) return IN_DOUBT;
        memcpy(path, folder->path, folder_length);
        path[folder_length] = '/';
        strcpy(path + folder_length + 1, file);
        int readable = fb_readable(path, own_real_path);
        if (readable < 0) return IN_DOUBT;
        if (readable) return is_fresh(index, rank, 0) ? FOUND : IN_DOUBT;
    }
    return is_fresh(index, index->ranked_count, 0) ? NOT_FOUND : IN_DOUBT;
}

struct spelling {
    const char *name;
    size_t length;
    int is_found;
};

static int
compare_spelling(st_data_t key, st_data_t unused, st_data_t data)
{
    struct spelling *wanted = (struct spelling *)data;
    const char *name = (const char *)key;
    if (strncasecmp(name, wanted->name, wanted->length) != 0) return ST_CONTINUE;
    const char *ending = name + wanted->length;
    if (*ending != 0 && *ending != '.') return ST_CONTINUE;
    /* Folders with the name itself were searched. */
    int is_exact = strncmp(name, wanted->name, wanted->length) == 0;
    if (is_exact && (*ending == 0 || strcmp(ending, ".rb") == 0 || strcmp(ending, ".so") == 0)) return ST_CONTINUE;
    wanted->is_found = 1;
    return ST_STOP;
}

/* Has any folder the first part of the name in other letters? Some file systems don't tell them apart. */
static int
is_spelt_otherwise(const struct index *index, const char *name)
{
    struct spelling wanted = {name, strcspn(name, "/"), 0};
    st_foreach(index->by_name, compare_spelling, (st_data_t)&wanted);
    return wanted.is_found;
}

static enum found
search_with(struct index *index, VALUE name, const char *ending, char path[PATH_MAX], int *own_real_path)
{
    char file[PATH_MAX];
    size_t length = (size_t)RSTRING_LEN(name), ending_length = strlen(ending);
    if (length == 0 || length + ending_length >= sizeof file) return IN_DOUBT;
    memcpy(file, RSTRING_PTR(name), length);
    strcpy(file + length, ending);
    return search_file(index, file, path, own_real_path);
}

VALUE
fb_index_search(VALUE self, VALUE name, VALUE only_files, int *own_real_path)
{
    struct index *index = index_of(self);
    StringValueCStr(name);
    if (!index->usable || index->stale) return Qnil;

    char path[PATH_MAX];
    enum found found;
    if (fb_ends_with(name, ".rb")) {
        found = search_with(index, name, "", path, own_real_path);
    } else if (fb_ends_with(name, ".so")) {
        found = search_with(index, name, "", path, own_real_path);
        if (found == NOT_FOUND) found = IN_DOUBT; /* Ruby tries more names */
    } else {
        found = search_with(index, name, ".rb", path, own_real_path);
        if (found == NOT_FOUND && !RTEST(only_files)) found = IN_DOUBT;
        if (found == NOT_FOUND) found = search_with(index, name, ".so", path, own_real_path);
    }
    /* After Qfalse Ruby does not search. So be sure. */
    if (found == NOT_FOUND) {
        int is_sure = is_fresh(index, index->ranked_count, 1) && !is_spelt_otherwise(index, RSTRING_PTR(name));
        return is_sure ? Qfalse : Qnil;
    }
    return found == FOUND ? rb_enc_str_new_cstr(path, rb_filesystem_encoding()) : Qnil;
}

void
fb_define_load_index(VALUE native)
{
    VALUE class = rb_define_class_under(native, "LoadIndex", rb_cObject);
    rb_define_alloc_func(class, index_allocate);
    rb_define_method(class, "take", index_take, 2);
}
