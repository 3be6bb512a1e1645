# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/own_walk"
require "open3"
require "rbconfig"
require "tmpdir"

# Compiles vm_layout.h with the private headers of every Ruby that it has a column for (gem datadog-ruby_core_source),
# and runs the result. The compiler names a field that moved: "PW_CFP_EP is WORD_OF(frame, ep)".
#
# That gem lacks vm_callinfo.h. Where PITWALL_RUBY_SOURCES has a Ruby's source archive, its headers are used as well.
class LayoutTest < Minitest::Test
  # Column => the gem's folders of that Ruby. The gem has a further folder for a patch release that moves a field.
  HEADERS = { 31 => %w[ruby-3.1.0-p0], 32 => %w[ruby-3.2.0-p0], 33 => %w[ruby-3.3.0-p0 ruby-3.3.5-p100],
              34 => %w[ruby-3.4.0-p0], 40 => %w[ruby-4.0.0-p0 ruby-4.0.6-p0] }.freeze
  # Rubies without a column: what differs from the last column is printed.
  UNKNOWN = %w[ruby-4.1.0-preview1].freeze

  # No header defines these two. The self-test at load checks them.
  UNSEEN = %w[PW_ROOT_FRAMES PW_RUBY_FRAME_HAS_PC].freeze
  OF_CALLINFO = %w[PW_CALL_DATA_CACHE PW_CALL_DATA_WORDS PW_CACHE_METHOD].freeze

  EXT = File.join(Checkout::ROOT, "ext/pitwall")
  ARCHIVES = ENV["PITWALL_RUBY_SOURCES"] || File.expand_path("../shared/sources", Checkout::ROOT)
  CC = ENV.fetch("CC", "cc")

  # "ruby-4.0.5.tar.xz" => 40
  def self.column_of(name) = File.basename(name)[/\Aruby-(\d+\.\d+)/, 1].to_s.delete(".").to_i

  def setup
    skip "layouts are known on 64-bit Linux only" unless RUBY_PLATFORM.match?(/(x86_64|aarch64)-linux/)
    skip "peer absent: a C compiler (apt-get install gcc libc6-dev)" unless system(CC, "--version", out: File::NULL, err: File::NULL)
    @dir = Dir.mktmpdir("pitwall-layout")
  end

  def teardown
    FileUtils.remove_entry(@dir) if @dir
  end

  HEADERS.each do |ruby, folders|
    folders.each do |folder|
      define_method("test_column_#{ruby}_with_#{folder.delete_prefix("ruby-").tr(".-", "_")}") do
        assert_empty differences(ruby, headers(folder))
      end
    end
  end

  Dir[File.join(ARCHIVES, "ruby-*.tar.{xz,gz}")].each do |archive|
    ruby = column_of(archive)
    next unless HEADERS.key?(ruby)

    define_method("test_column_#{ruby}_with_the_archive_of_#{File.basename(archive)[/\Aruby-(.*)\.tar/, 1].tr(".-", "_")}") do
      tree = unpacked_headers(archive)
      assert File.file?("#{tree}/vm_callinfo.h"), archive
      # The build makes id.h, which the gem has.
      assert_empty differences(ruby, "#{tree}:#{headers(HEADERS[ruby].last)}", "-DCALLINFO")
    end
  end

  # The list that picks a column, the text in messages and the Rubies tested here are the same ones.
  def test_known_rubies_are_tested
    known = File.read("#{EXT}/vm/vm_known.h")
    assert_equal HEADERS.keys, known[/define PW_HAS_COLUMN.*/].scan(/== (\d+)/).flatten.map(&:to_i)
    names = HEADERS.keys.map { |ruby| ruby.digits.reverse.join(".") }
    assert_equal "#{names.first} to #{names.last}", known[/define PW_KNOWN_RUBIES "(.*)"/, 1]
    %w[README.md doc/sampling.md doc/tracing.md].each do |file|
      assert_includes File.read(File.join(Checkout::ROOT, file)), "#{names.first} to #{names.last}", file
    end
    assert_includes File.read("#{EXT}/vm/vm_layout.h"), "PW_COLUMN(#{HEADERS.keys.map { |ruby| "r#{ruby}" }.join(", ")})"
  end

  # A Ruby with a column walks its own stacks: the self-test at load has held.
  def test_the_running_ruby_is_walked_where_it_has_a_column
    running = RUBY_VERSION.split(".").first(2).join.to_i
    refusal = OwnWalk.refusal
    if OwnWalk.forced_unknown? || !HEADERS.key?(running)
      assert_match(/\Athe layout of Ruby #{RUBY_VERSION[/\d+\.\d+/]} is not known/, refusal)
    else
      assert_nil refusal
    end
  end

  # Each constant of the table, made wrong, is named by the compiler.
  def test_a_wrong_value_is_found
    names = []
    changed = changed_layout do |text|
      text.gsub(/\b(PW_[A-Z0-9_]+) = (PW_COLUMN\([^)]*\)|-?\w+)/) { names << $1 and "#{$1} = (#{$2}) + 1000" }
    end
    assert_operator names.size, :>, 30
    of_31, others = (names - UNSEEN - OF_CALLINFO).partition { |name| name.end_with?("_31") }
    assert_equal 4, of_31.size
    { HEADERS.keys.last => others, 31 => of_31 }.each do |ruby, expected|
      found = differences(ruby, headers(HEADERS[ruby].last), include: changed)
      assert_equal expected, expected.select { |name| found.any? { |line| line.include?("#{name} ") } }
    end
  end

  # In one column, by one.
  def test_a_wrong_column_is_found
    line = "PW_BODY_CALL_DATA = PW_COLUMN(24, 23, 23, 23, 24)"
    assert_includes File.read("#{EXT}/vm/vm_layout.h"), line
    changed = changed_layout { |text| text.sub(line, "PW_BODY_CALL_DATA = PW_COLUMN(24, 23, 23, 24, 24)") }
    HEADERS.each do |ruby, folders|
      found = differences(ruby, headers(folders.last), include: changed)
      assert_equal ruby == 34 ? ["PW_BODY_CALL_DATA is WORD_OF(body, call_data)"] : [], found, ruby
    end
  end

  # What a program checks after the compiler.
  def test_a_wrong_function_is_found
    changed = changed_layout { |text| text.sub("definition_word & 0xf", "definition_word & 0x7") }
    assert_equal ["pw_method_type_of"], differences(34, headers("ruby-3.4.0-p0"), include: changed).uniq
  end

  # What a Ruby without a column has changed. When nothing differs any more, the last column fits it.
  def test_unknown_rubies_differ
    UNKNOWN.each do |folder|
      refute_includes HEADERS.keys, self.class.column_of(folder)
      types = ["-Drb_len_t=long", "-Drb_ulen_t=unsigned long"] # in its public headers
      found = differences(HEADERS.keys.last, headers(folder), *types)
      puts "\n#{folder} differs from column #{HEADERS.keys.last}:", found.map { |line| "  #{line}" }
      refute_empty found, "column #{HEADERS.keys.last} fits #{folder}"
    end
  end

  private

  def headers(folder)
    @gem ||= Gem::Specification.find_by_name("datadog-ruby_core_source").gem_dir
    path = File.join(@gem, "lib/datadog/ruby_core_source", folder)
    assert File.file?("#{path}/vm_core.h"), "#{folder} is not in the gem datadog-ruby_core_source: script/setup"
    path
  end

  def unpacked_headers(archive)
    tree = File.join(@dir, File.basename(archive)[/\Aruby-.*(?=\.tar)/])
    Dir.mkdir(tree)
    output, status = Open3.capture2e("tar", "-xf", archive, "-C", tree, "--strip-components=1", "--wildcards", "*.h")
    assert status.success?, output
    tree
  end

  # A folder with a changed vm_layout.h.
  def changed_layout
    text = File.read("#{EXT}/vm/vm_layout.h")
    changed = yield text
    refute_equal text, changed
    FileUtils.mkdir_p("#{@dir}/vm")
    File.write("#{@dir}/vm/vm_layout.h", changed)
    @dir
  end

  # What the compiler or then the program says of the column: none when all of it is right.
  def differences(ruby, folders, *options, include: nil)
    folders = folders.split(":")
    options += ["-DC_TRACE"] if File.read("#{folders.first}/vm_core.h").include?("BUILTIN_ATTR_C_TRACE")
    includes = [include, *folders, EXT, RbConfig::CONFIG["rubyhdrdir"], RbConfig::CONFIG["rubyarchhdrdir"]].compact
    program = File.join(@dir, "check")
    # Inline functions of the headers call Ruby's; none of them runs.
    output, status = Open3.capture2e({ "LC_ALL" => "C" }, CC, "-std=gnu11", "-w", "-DPW_RUBY=#{ruby}", *options,
                                     *includes.map { |path| "-I#{path}" }, File.join(__dir__, "layout_check.c"),
                                     "-Wl,--unresolved-symbols=ignore-all", "-o", program)
    return said_of_the_column(output) unless status.success?

    output, status = Open3.capture2e(program)
    assert_equal output.empty?, status.success?, output
    output.lines(chomp: true)
  end

  # Errors elsewhere than in layout_check.c are of headers that need other public ones.
  def said_of_the_column(output)
    lines = output.lines.grep(/layout_check\.c:\d+:\d+: error: /)
    refute_empty lines, output
    lines.map { |line| line[/static assertion failed: "(.*)"/, 1] || line[/error: (.*)/, 1] }
         .grep_v(/expression in static assertion/).uniq
  end
end
