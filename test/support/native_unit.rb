# frozen_string_literal: true

require "digest"
require "fileutils"
require "open3"
require "rbconfig"
require_relative "../../script/checkout"

# A unit test in C: test/native/units/NAME_test.c, built with the sources that it tests, and run test by test.
#
# The comment at the head of a test file has lines that say how to build it:
#
#   sources: living.c raw_syscall.c   files in any folder below ext/pitwall, or in ext/fastboot
#   wraps: calloc realloc             functions that the test file defines as __wrap_NAME (the linker's --wrap)
#   sanitizers: address thread        default: address, with which UndefinedBehaviorSanitizer runs as well
#   unresolved: allowed               functions that no test calls may be missing
#   layouts: all                      also once for each newer column of vm_layout.h (or "40": for these columns only)
class NativeUnit
  FOLDER = File.join(Checkout::ROOT, "test/native/units")
  EXT = File.join(Checkout::ROOT, "ext/pitwall")
  FASTBOOT = File.join(Checkout::ROOT, "ext/fastboot")
  BUILDS = File.join(Checkout::ROOT, "tmp/units", Checkout::TAG)
  CC = ENV.fetch("CC", "cc")
  FLAGS = %w[-std=gnu11 -D_GNU_SOURCE -g -O1 -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers
             -Werror].freeze
  SANITIZERS = { "address" => %w[-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer],
                 "thread" => %w[-fsanitize=thread -fno-omit-frame-pointer], "none" => [] }.freeze
  NAMES = { "address" => "AddressSanitizer and UndefinedBehaviorSanitizer", "thread" => "ThreadSanitizer",
            "none" => "no sanitizer" }.freeze
  # LeakSanitizer fails under strace and in some containers. The tests count what is held instead.
  ENVIRONMENT = { "ASAN_OPTIONS" => "detect_leaks=0:allocator_may_return_null=1",
                  "UBSAN_OPTIONS" => "print_stacktrace=1", "TSAN_OPTIONS" => "halt_on_error=1:exitcode=66" }.freeze
  VALGRIND = %W[valgrind --quiet --error-exitcode=9 --leak-check=no --fair-sched=try --trace-children=no
                --suppressions=#{FOLDER}/valgrind.supp].freeze
  PATIENCE = 120 # seconds, for a program that hangs

  # reason: why tests are skipped, or nil; prefix: how to start a program, e.g. [] or ["setarch", "-R"].
  Ready = Struct.new(:reason, :prefix)

  class << self
    #: () -> Array[NativeUnit]
    def all = Dir[File.join(FOLDER, "*_test.c")].sort.map { |path| new(File.basename(path, "_test.c")) }

    # Whether programs of that sanitizer can be built and run here.
    #: (String) -> Ready
    def ready(sanitizer) = (@ready ||= {})[sanitizer] ||= try(sanitizer)

    # [output, whether the command succeeded]
    def run(*command)
      output, status = Open3.capture2e(ENVIRONMENT, "timeout", PATIENCE.to_s, *command)
      return [output, true] if status.success?

      ["#{output}\nended with #{status}#{" after #{PATIENCE} s" if status.exitstatus == 124}", false]
    rescue Errno::ENOENT => e
      [e.message, false]
    end

    private

    def try(sanitizer)
      FileUtils.mkdir_p(BUILDS)
      program = File.join(BUILDS, "probe-#{sanitizer}-#{Process.pid}")
      File.write("#{program}.c", "int main(void) { return 0; }\n")
      _, built = run(CC, *SANITIZERS.fetch(sanitizer), "#{program}.c", "-o", program)
      unless built
        what = sanitizer == "none" ? "a C compiler" : "#{NAMES[sanitizer]} for #{CC}"
        return Ready.new("peer absent: #{what} (apt-get install gcc libc6-dev)", [])
      end

      # ThreadSanitizer needs less random addresses than some kernels give (sysctl vm.mmap_rnd_bits).
      prefix = [[], %w[setarch -R]].find { |way| run(*way, program).last }
      return Ready.new(nil, prefix) if prefix

      Ready.new("#{NAMES[sanitizer]} cannot run here: #{run(program).first.lines.first.to_s.strip}", [])
    ensure
      FileUtils.rm_f([program, "#{program}.c"]) if program
    end
  end

  attr_reader :name #: String, e.g. "ring"

  def initialize(name)
    @name = name
    @file = File.join(FOLDER, "#{name}_test.c")
    @text = File.read(@file)
  end

  # Names of the tests, in the file's order.
  #: () -> Array[String]
  def tests = @text.scan(/^TEST\((\w+)\)/).flatten

  # Columns of vm_layout.h beside the running Ruby's, e.g. [34, 40]. Only newer ones: the running Ruby's headers may lack
  # what older columns need.
  #: () -> Array[Integer]
  def layouts
    header = File.read(Dir[File.join(EXT, "**/vm_known.h")].first)
    known = header[/PW_HAS_COLUMN\(ruby\) (.*)/, 1].scan(/== (\d+)/).flatten.map(&:to_i)
    wanted = words("layouts") == %w[all] ? known : words("layouts").map(&:to_i) & known
    wanted.select { |column| column > RUBY_VERSION[/\A\d+\.\d+/].delete(".").to_i }
  end

  #: () -> bool
  def needs_layout? = words("layouts").any?

  #: () -> Array[String]
  def sanitizers = words("sanitizers").then { |given| given.empty? ? %w[address] : given }

  # Builds the program, unless it is current. Raises the compiler's messages.
  #: (String, ?Array[String]) -> String  its path, e.g. "…/tmp/units/3.1.2-x86_64-linux-gnu/ring-thread"
  def build(sanitizer, flags = [])
    program = File.join(BUILDS, [name, sanitizer, *flags].join("-").gsub(/[^\w-]/, ""))
    command = [CC, *FLAGS, *SANITIZERS.fetch(sanitizer), *found_by_extconf, *flags, *includes, @file, *sources,
               *words("wraps").map { |function| "-Wl,--wrap=#{function}" }, *unresolved, "-pthread"]
    files = Dir[File.join(EXT, "**/*.{c,h}"), File.join(FASTBOOT, "*.{c,h}"), File.join(FOLDER, "*")].sort
    digest = Digest::SHA256.hexdigest([command, files.map { |path| File.binread(path) }].join("\0"))
    stamp = "#{program}.stamp"
    return program if File.file?(program) && File.file?(stamp) && File.read(stamp) == digest

    FileUtils.mkdir_p(BUILDS)
    @failed ||= {} # once is enough: each test would compile it again
    output, built = self.class.run(*command, "-o", "#{program}.new") unless @failed[program]
    @failed[program] ||= "#{@file} does not compile:\n#{output}" unless built
    raise @failed[program] if @failed[program]

    File.rename("#{program}.new", program)
    File.write(stamp, digest)
    program
  end

  private

  # "sources: a.c b.c" => ["a.c", "b.c"]
  def words(key) = @text[%r{\A/\*.*?\*/}m].to_s[/^ \* #{key}: (.*?)(?: ?\*\/)?$/, 1].to_s.split

  def sources
    words("sources").flat_map do |word|
      found = Dir[File.join(EXT, "**", word), File.join(FASTBOOT, word)]
      raise "#{@file}: no #{word} below ext/pitwall, or in ext/fastboot" if found.empty?

      found
    end
  end

  def unresolved = words("unresolved") == %w[allowed] ? %w[-Wl,--unresolved-symbols=ignore-all -fno-pie -no-pie] : []

  # The sources include headers by their path below ext/pitwall, the tests by the file name alone.
  def includes
    ruby = RbConfig::CONFIG.values_at("rubyhdrdir", "rubyarchhdrdir").flat_map { |folder| ["-isystem", folder] }
    folders = [FOLDER, EXT, *Dir[File.join(EXT, "**/")].map { |folder| folder.chomp("/") }, FASTBOOT].uniq
    folders.map { |folder| "-I#{folder}" } + ruby
  end

  # The extension is compiled with the same definitions.
  def found_by_extconf
    makefile = File.join(Checkout::BUILD, "Makefile")
    File.file?(makefile) ? File.read(makefile)[/^CPPFLAGS = .*/].to_s.scan(/-DHAVE_\S+/) : []
  end
end
