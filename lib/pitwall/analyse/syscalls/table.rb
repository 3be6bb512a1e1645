# frozen_string_literal: true

module Pitwall
  module Analyse
    module Syscalls
      # Pitwall's own patterns, in the order of its passes.
      # A pass sees only the calls that earlier passes did not absorb.
      # The seven patterns of the study (doc/syscalls.md) keep its order. The other patterns are placed so that they
      # do not take calls from each other: first files that are read, then lookups of files, then repeated lookups.
      #
      # doc/syscalls.md also lists the keys. `study: true` marks the study's patterns.
      # Logs in the study's format are read with these only, because such logs have no results and flags of calls.
      TABLE = [
        { "name" => "%TINY", "match" => "run",
          "calls" => "read pread", "same" => "path", "bytes" => 64, "least" => 8,
          "explanation" => "a file read in pieces of 64 bytes or less",
          "advice" => "read it whole and take it apart in memory (File.binread, StringIO), or keep what comes of " \
                      "it; for time zones, the gem tzinfo-data",
          "keeps" => 1 },
        { "name" => "%LOAD", "study" => true, "match" => "sequence",
          "calls" => "open fstat close open fstat fgetxattr fgetxattr close",
          "explanation" => "a Ruby file loaded through a compile cache that keeps its entry in extended attributes",
          "advice" => "keep all compiled code in one file, read once, and each feature's path with it",
          "keeps" => 1 },
        { "name" => "%YAML", "study" => true, "match" => "sequence",
          "calls" => "open fstat fgetxattr fgetxattr close",
          "explanation" => "a YAML file loaded through a compile cache that keeps its entry in extended attributes",
          "advice" => "keep all parsed YAML in one file, read once", "keeps" => 1 },
        { "name" => "%BOOT", "match" => "sequence",
          "calls" => "open:a fstat:a open:b fstat*:b read+:b read|fstat|seek*:b close:a close:b",
          "paths" => { "b" => "/compile-cache-[^/]*/|/bootsnap/" },
          "explanation" => "a file loaded through bootsnap's compile cache: its own status, then a file of its " \
                           "own in the cache",
          "advice" => "keep the whole cache in one file that is read once and check files by one stat each; load " \
                      "later what the start doesn't need",
          "keeps" => 1 },
        { "name" => "%PACK", "match" => "sequence",
          "calls" => "stat? open fstat|control|seek* read|pread|map+ read|pread|map|fstat|seek* close",
          "path" => '(?:/\.pitwall/|(?:compile|iseq|boot)[-_]?cache)[^/]*\.pack\z',
          "explanation" => "a compile cache that is one file, read or mapped whole",
          "advice" => "nothing: this is what a start costs at least", "keeps" => 64 },
        { "name" => "%RRPI", "study" => true, "match" => "walk",
          "calls" => "lstat",
          "explanation" => "Ruby's realpath asks for each folder of a path, mostly ones it has asked for before",
          "advice" => "load fewer files: Ruby resolves each one it loads; ask File.realpath once for a folder, " \
                      "not for each file in it",
          "at_most" => true },
        { "name" => "%REAL", "match" => "walk",
          "calls" => "readlink", "then" => "stat",
          "explanation" => "realpath reads each folder of a path as a link, mostly ones it has read before",
          "advice" => "load fewer files, also under bootsnap: Ruby resolves each one it loads; ask File.realpath " \
                      "once for a folder, not for each file in it",
          "at_most" => true },
        { "name" => "%SPEC", "match" => "sequence",
          "calls" => "stat|access? open fstat|control|seek* read+ read|fstat|control|seek* close",
          "path" => '\.gemspec\z',
          "explanation" => "a gem's specification read by RubyGems or Bundler",
          "advice" => "remove gems that nobody uses from this Ruby and this bundle: each start of RubyGems and " \
                      "Bundler reads all of their specifications",
          "at_most" => true },
        { "name" => "%CONF", "match" => "sequence",
          "calls" => "stat|access? open fstat|control|seek* read+ read|fstat|control|seek* close",
          "path" => '\.ya?ml\z',
          "explanation" => "a YAML file read and parsed: settings, translations",
          "advice" => "let bootsnap cache parsed YAML (compile_cache_yaml), and load only the locales in use " \
                      "(config.i18n.available_locales)",
          "keeps" => 1 },
        { "name" => "%RUBY", "match" => "sequence",
          "calls" => "stat|access? open fstat|control|seek* read+ read|fstat|control|seek* close",
          "path" => '\.rb\z',
          "explanation" => "a Ruby file read and compiled",
          "advice" => "load through a compile cache (bootsnap), and load later what the start doesn't need",
          "keeps" => 1, "at_most" => true },
        { "name" => "%SOLD", "match" => "sequence",
          "calls" => "open read+ pread* fstat* pread* map+ map|seek|read|pread* close",
          "path" => '\.so[.\d]*\z',
          "explanation" => "a native library loaded by the dynamic linker",
          "advice" => "require native extensions where they are first used; each is a file and some mappings",
          "keeps" => 1, "at_most" => true },
        { "name" => "%FILE", "match" => "sequence",
          "calls" => "stat|access? open fstat|control|seek* read+ read|fstat|control|seek* close",
          "explanation" => "some other file read from beginning to end",
          "advice" => "read it when it is first needed, or keep what comes of it", "keeps" => 1 },
        { "name" => "%DIRS", "match" => "sequence",
          "calls" => "stat|access? open fstat|control|seek* entries+ seek* close",
          "explanation" => "a folder's entries listed",
          "advice" => "list once and keep the result (Dir.glob at load time, Zeitwerk's and engines' folders), " \
                      "or name the files",
          "once" => true },
        { "name" => "%SCAN", "study" => true, "match" => "scan",
          "calls" => "open", "rule" => "ends",
          "explanation" => "one file looked for in one folder after another: those of $LOAD_PATH, or for libc's " \
                           "own files (LC_CTYPE, locale) those of the system",
          "advice" => "for Ruby's files, index the load path once (bootsnap's load-path cache), or require by " \
                      "absolute path; for libc's, nothing",
          "keeps" => 1, "at_most" => true },
        { "name" => "%PEEK", "match" => "sequence",
          "calls" => "open? control* fstat control* close",
          "explanation" => "a file opened, looked at and closed again: Ruby sees whether it can be loaded",
          "advice" => "load fewer files: Ruby opens each one before it loads it, under bootsnap too; eager-load " \
                      "only what the start needs",
          "at_most" => true },
        { "name" => "%SGEM", "study" => true, "match" => "contents",
          "calls" => "stat lstat", "least" => 9, "counted" => true,
          "except" => %w[config csv fonts images javascripts stylesheets svg],
          "explanation" => "all files of a gem asked for, one by one, from inside its folder",
          "advice" => "list the files in the gemspec instead of globbing at each start; install gems instead of " \
                      "naming git or path sources, whose gemspecs are evaluated each time" },
        { "name" => "%ASDS", "study" => true, "match" => "scan",
          "calls" => "stat", "rule" => "name", "counted" => true,
          "explanation" => "one file looked for in one folder of the autoload or load path after another",
          "advice" => "index the folders once (bootsnap's load-path cache, Zeitwerk), or shorten the path",
          "keeps" => 1 },
        { "name" => "%STLS", "study" => true, "match" => "sequence",
          "calls" => "stat lstat",
          "explanation" => "a file's status asked for twice, with and without following links",
          "advice" => "ask lstat first, and stat only for links", "keeps" => 1 },
        { "name" => "%STOP", "match" => "sequence",
          "calls" => "stat|lstat|access+ open",
          "explanation" => "a file asked for before it is opened",
          "advice" => "open it, and rescue Errno::ENOENT", "keeps" => 1 },
        { "name" => "%CHEK", "match" => "run",
          "calls" => "stat lstat", "same" => "anything", "least" => 8,
          "path" => '\.(?:rb|so|ya?ml|erb|gemspec)\z|/[^/.]+\z',
          "explanation" => "files and folders asked for one after another: whether they are there, or have changed",
          "advice" => "list their folder once instead of asking for each, or keep the answers with the release " \
                      "they belong to",
          "keeps" => 6, "at_most" => true },
        { "name" => "%SAME", "match" => "repeat",
          "calls" => "stat lstat access readlink",
          "explanation" => "the same question about the same path, with the same answer as before",
          "advice" => "keep the answer: memoize it while loading, and ask once for a folder, not for each file " \
                      "in it" },
        { "name" => "%MISS", "match" => "repeat",
          "calls" => "open", "fails" => true,
          "explanation" => "a file that was not there when it was tried before, tried again",
          "advice" => "remember what is missing: an optional require in a begin/rescue looks through the whole " \
                      "load path each time" }
      ].each(&:freeze).freeze
    end
  end
end
