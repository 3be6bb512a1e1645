# frozen_string_literal: true

require_relative "test_helper"
require_relative "support/ruby_layers"

# The layers of lib/: `collect → record → analyse → show`, and the layers on top of these. ext/pitwall has its own test.
class LayersTest < Minitest::Test
  # `require` paths of integrations, such as "pitwall/rack".
  SHORT = %w[budget invalidations ips minitest rack rspec sidekiq test_unit]
          .map { |name| "lib/pitwall/#{name}.rb" }.freeze

  # By layer, from the bottom up: where its files are, and the layers that it uses. A layer uses only layers that stand
  # before it in this list. The longest path that fits counts.
  LAYERS = {
    # pitwall-core: what is loaded into programs under measurement.
    "foundation" => [%w[version errors native compat application].map { |name| "lib/pitwall/#{name}.rb" }, []],
    "collect" => [%w[lib/pitwall/collect/], %w[foundation]],
    "bench_child" => [%w[lib/pitwall/bench_child/], %w[foundation]],
    "fastboot" => [%w[lib/pitwall/fastboot.rb lib/pitwall/fastboot/], %w[foundation]],
    "block form" => [%w[lib/pitwall.rb], %w[foundation collect]],
    "integrations" => [%w[lib/pitwall/integrations/], ["foundation", "collect", "bench_child", "block form"]],
    "require paths" => [SHORT, %w[integrations]],
    # The gem pitwall: data.
    "record" => [%w[lib/pitwall/record.rb lib/pitwall/record/], %w[foundation]],
    "analyse" => [%w[lib/pitwall/analyse.rb lib/pitwall/analyse/], %w[foundation record]],
    "show" => [%w[lib/pitwall/show.rb lib/pitwall/show/], %w[foundation record analyse]],
    "symbols" => [%w[lib/pitwall/symbols.rb lib/pitwall/symbols/], %w[foundation record]],
    # The gem pitwall: what runs commands and measures.
    "launch" => [%w[lib/pitwall/launch.rb lib/pitwall/launch/], %w[foundation]],
    "joining" => [%w[lib/pitwall/joining.rb lib/pitwall/joining/], %w[foundation record analyse symbols]],
    "bench" => [%w[lib/pitwall/bench/], %w[foundation record launch]],
    "workspace" => [%w[lib/pitwall/workspace.rb lib/pitwall/workspace/], %w[foundation launch bench]],
    "experiment" => [%w[lib/pitwall/experiment.rb lib/pitwall/experiment/], %w[foundation record analyse bench]],
    "history" => [%w[lib/pitwall/history.rb lib/pitwall/history/], %w[foundation record analyse]],
    "doctor" => [%w[lib/pitwall/doctor.rb lib/pitwall/doctor/], %w[foundation collect record launch]],
    # The command.
    "typed times" => [%w[lib/pitwall/duration.rb], %w[foundation]],
    "views" => [%w[lib/pitwall/views.rb lib/pitwall/views/],
                ["foundation", "record", "analyse", "show", "typed times"]],
    "cli" => [%w[lib/pitwall/cli.rb lib/pitwall/cli/],
              ["foundation", "collect", "fastboot", "record", "analyse", "show", "symbols", "launch", "joining",
               "bench", "workspace", "experiment", "history", "doctor", "typed times", "views"]]
  }.freeze

  # Uses that the table does not allow, with the reason.
  ALLOWED = {
    ["lib/pitwall.rb", "cli"] => "Result#report prints what `pitwall report` does, if the gem pitwall is there",
    ["lib/pitwall.rb", "record"] => "Result#sites reads the recording, if the gem pitwall is there",
    ["lib/pitwall.rb", "analyse"] => "Result#sites, likewise",
    ["lib/pitwall/integrations/invalidations.rb", "record"] => "reads what a test's block changed, if the gem is there",
    ["lib/pitwall/integrations/invalidations.rb", "analyse"] => "likewise"
  }.freeze

  # pitwall-core loads no standard library that is a gem: that would fix its version before the program's Bundler does.
  CORE = ["foundation", "collect", "bench_child", "fastboot", "block form", "integrations", "require paths"].freeze
  CORE_FEATURES = {
    "rbconfig" => "core Ruby, not loaded with --disable-gems",
    "pitwall/pitwall" => "the extension",
    "pitwall/fastboot_pack" => "the accelerator's own extension",
    "collect/session" => "core's own, by a path that the bootstrap knows",
    "lib/pitwall/bench_child/assembled" => "core's own, made of bench_child/ when the gem is built",
    "socket" => "no gem; loaded when the program is controlled through a socket",
    "objspace" => "no gem; loaded when a budget counts bytes",
    "stringio" => "Result#report, which loads the gem pitwall anyway",
    "minitest" => "the program's own test framework", "minitest/assertions" => "likewise",
    "rspec/expectations" => "likewise", "test/unit/testcase" => "likewise"
  }.freeze

  # Constants from elsewhere that analysis may use: values and mathematics. Of File, functions of strings only.
  PURE = %w[Array Enumerable Comparable Encoding Float Hash Integer Math Numeric Rational Regexp Set String Struct
            ArgumentError RegexpError SystemCallError Digest::SHA256 DidYouMean::SpellChecker
            File.basename File.dirname File.extname File.fnmatch File::FNM_DOTMATCH].freeze
  # Functions and global variables that look outside, or are random.
  IMPURE = /\A(?:`|\$(?:stdout|stderr|stdin|PROGRAM_NAME|0|\$|<|>|LOAD_PATH|LOADED_FEATURES)|s?rand|puts|print|pp?|warn|
             sleep|system|exec|fork|spawn|gets|open|exit!?|abort|at_exit|trap|load|binding|eval)\z/x.freeze

  # Layers that may name the command's options.
  COMMAND = %w[views cli].freeze
  # Options that files of other layers name, with the reason. An error carries its advice as a key instead
  # (Error#advice); new code has no reason to be here.
  OPTIONS = {
    "other programs' options that the command has as well (git, gem, perf)" => {
      "launch/perf.rb" => %w[--no-demangle], "launch/perf_recording.rb" => %w[--control],
      "workspace/bundle.rb" => %w[--quiet], "workspace/checkout.rb" => %w[--depth --quiet],
      "workspace/gem_versions.rb" => %w[--version], "workspace/tree.rb" => %w[--quiet],
      "workspace/commits.rb" => %w[--amend --format --only --quiet], "workspace/commit_range.rb" => %w[--format],
      "workspace/repository.rb" => %w[--format --path --quiet --verify]
    },
    "the options are the data: completion scripts, and the name under which a side was given" => {
      "show/completion.rb" => %w[--help --version], "show/completion/zsh.rb" => %w[--help --version],
      "workspace.rb" => %w[--carry --control --dirty --rev --ruby], "workspace/bundle.rb" => %w[--no-bundle],
      "workspace/carried_files.rb" => %w[--carry], "workspace/interpreter.rb" => %w[--ruby],
      "workspace/repository.rb" => %w[--dirty --rev]
    },
    "a finding names the command that shows it again" => {
      "analyse/findings/garbage.rb" => %w[--view], "analyse/findings/tests.rb" => %w[--request --tree --view],
      "analyse/findings/heavy_code.rb" => %w[--callees --lines --only-mine --tree --weight],
      "analyse/findings/objects.rb" => %w[--retained --view], "analyse/findings/queries.rb" => %w[--label --view],
      "analyse/findings/served.rb" => %w[--label --only-mine --request --tree --view],
      "analyse/findings/waiting.rb" => %w[--bottom-up --lines --state]
    },
    "a warning names the option that mends it; the checks of doctor are such warnings" => {
      "analyse/allocations/allocations.rb" => %w[--stacks], "analyse/report/summary.rb" => %w[--mode],
      "analyse/compare/measurement_warnings.rb" => %w[--budget --gc --no-pin --pairs --runs --warmup],
      "analyse/report/trace_filters.rb" => %w[--], "analyse/syscalls/syscall_patterns.rb" => %w[--patterns],
      "bench/profiles.rb" => %w[--timeout], "collect/session.rb" => %w[--mode --signal],
      "collect/window.rb" => %w[--delay --duration], "doctor/host.rb" => %w[--mode --signal],
      "doctor/output.rb" => %w[--record], "doctor/ruby.rb" => %w[--mode --native --stacks --symbols]
    },
    "an error about a value that was given by an option, or that another option gives" => {
      "analyse/requests/requests.rb" => %w[--view],
      "analyse/gc/gc_cost.rb" => %w[--allocations --recording --stacks],
      "analyse/gc/prediction_check.rb" => %w[--predicted], "analyse/tree/method_match.rb" => %w[--limit],
      "analyse/requests/request_change.rb" => %w[--after --before],
      "experiment.rb" => %w[--only], "experiment/compare.rb" => %w[--check --instructions --retained --syscalls],
      "launch/control.rb" => %w[--control], "launch/destination.rb" => %w[--record]
    }
  }.freeze

  def setup
    @lib = self.class.lib
  end

  # @return [RubyLayers] of all of lib/
  def self.lib
    @lib ||= Dir.chdir(Checkout::ROOT) do
      files = Dir["lib/**/*.rb"].grep_v(%r{\Alib/pitwall/native/|/assembled\.rb\z})
      RubyLayers.new(files.to_h { |path| [path, File.read(path, encoding: "UTF-8")] })
    end
  end

  def allowed?(use, used) = ALLOWED.key?([use.from, used])

  def impure(layers)
    analysis = ->(source) { source.path.match?(%r{\Alib/pitwall/analyse[/.]}) }
    names = layers.foreign_names.select { |source, name| analysis.call(source) && !pure?(name) }
    functions = layers.sources.select(&analysis).flat_map do |source|
      found = source.functions.select { |name, _| name.match?(IMPURE) && !source.methods.include?(name) }
      found.map { |name, line| "#{source.path}:#{line} uses #{name}" }
    end
    names.map { |source, name| "#{source.path}:#{name.line} uses #{name}" } + functions
  end

  # "Math" allows Math, Math.sqrt and Math::PI; "File.basename" that method only.
  def pure?(name)
    constant = name.words.join("::")
    PURE.any? { |pure| [name.to_s, constant].include?(pure) || constant.start_with?("#{pure}::") }
  end

  def test_each_layer_uses_only_layers_above_it_in_the_table
    known = []
    LAYERS.each do |layer, (_, used)|
      assert_empty used - known, layer
      known << layer
    end
  end

  def test_no_arrow_points_up
    seen = []
    forbidden = @lib.forbidden(LAYERS) { |use, _, used| allowed?(use, used) && seen << [use.from, used] }
    assert_empty forbidden
    assert_empty ALLOWED.keys - seen, "exceptions that nothing needs any more"
  end

  # @return [Array<Array<String>>] groups of folders of the layer that use each other
  def circles_within(layers, layer)
    groups = layers.circles { |path| path[%r{\Alib/pitwall/#{layer}/\w+(?=/)}] }
    groups.map { |folders| folders.map { |path| File.basename(path) } }
  end

  def test_folders_of_a_layer_do_not_use_each_other
    folders = Dir.chdir(Checkout::ROOT) { Dir["lib/pitwall/*/"] }
    layers = folders.map { |path| File.basename(path) } - %w[native]
    found = layers.to_h { |layer| [layer, circles_within(@lib, layer)] }.reject { |_, circles| circles.empty? }
    assert_empty found
  end

  def test_core_requires_core_ruby_only
    foreign = @lib.foreign_features.select { |source, _, _| CORE.include?(@lib.layer_of(LAYERS, source.path)) }
    foreign.reject! { |_, feature, _| CORE_FEATURES.key?(feature) }
    assert_empty(foreign.map { |source, feature, line| "#{source.path}:#{line} requires #{feature}" })
  end

  def test_analysis_is_pure
    assert_empty impure(@lib)
  end

  # Options of the command that a file below it names. Other programs' options are no matter.
  # @return [Hash{String => Array<String>}] by path below lib/pitwall/
  def options_below(layers)
    above, below = layers.sources.partition { |source| COMMAND.include?(layers.layer_of(LAYERS, source.path)) }
    own = above.flat_map { |source| source.options.map(&:first) }.uniq | ["--"]
    below.to_h { |source| [source.path.delete_prefix("lib/pitwall/"), (source.options.map(&:first) & own).sort] }
         .reject { |_, words| words.empty? }
  end

  def test_nobody_below_the_command_names_an_option
    excepted = Hash.new { |files, path| files[path] = [] }
    OPTIONS.each_value { |files| files.each { |path, words| excepted[path] |= words } }
    named = options_below(@lib)
    assert_empty named.to_h { |path, words| [path, words - excepted[path]] }.reject { |_, words| words.empty? }
    idle = excepted.to_h { |path, words| [path, words - named.fetch(path, [])] }.reject { |_, words| words.empty? }
    assert_empty idle, "exceptions that nothing needs any more"
  end

  # ---- The test itself finds what it is for. ----

  def in_analyse(text) = "module Pitwall; module Analyse\n#{text}\nend; end"

  # A small house that keeps the rules, with more planted in it.
  def planted(**more)
    files = {
      "lib/pitwall/errors.rb" => "module Pitwall; class UsageError < StandardError; end; end",
      "lib/pitwall/collect/session.rb" => "module Pitwall; module Collect; class Session < UsageError; end; end; end",
      "lib/pitwall/record.rb" => "module Pitwall; module Record; Frame = Struct.new(:id); end; end",
      "lib/pitwall/analyse/tree/tree.rb" => in_analyse("class Tree; def frame = Record::Frame.new(1); end"),
      "lib/pitwall/analyse/gc/cost.rb" => in_analyse("class Cost; end"),
      "lib/pitwall/show/text.rb" => "module Pitwall; module Show; class Text; def of = Analyse::Tree; end; end; end",
      "lib/pitwall/cli/report.rb" => "module Pitwall; module CLI; def self.on = '--limit N'; end; end"
    }
    RubyLayers.new(files.merge(more.transform_keys(&:to_s)))
  end

  def test_a_house_in_order_is_found_to_be_so
    assert_empty planted.forbidden(LAYERS)
    assert_empty impure(planted)
    assert_empty options_below(planted)
    assert_empty planted.circles { |path| path[%r{\A.*(?=/)}] }
  end

  def test_planted_arrows_are_found
    arrows = {
      "require 'pitwall/show/text'" => "requires pitwall/show/text",
      "require_relative '../../show/text'" => "requires lib/pitwall/show/text",
      "module Pitwall; autoload :Text, 'pitwall/show/text'; end" => "requires pitwall/show/text",
      in_analyse("def self.a = Show::Text.new") => "names Pitwall::Show::Text",
      in_analyse("class X < Show::Text; end") => "names Pitwall::Show::Text",
      "def a\n  ::Pitwall::CLI.on 1\nend" => "names Pitwall::CLI",
      "module Pitwall\n  raise Collect::Session, 'x' if 1\nend" => "names Pitwall::Collect::Session"
    }
    arrows.each do |text, how|
      found = planted("lib/pitwall/analyse/tree/new.rb": text).forbidden(LAYERS)
      assert_equal 1, found.size, text
      assert_match(/\A\S+new\.rb:\d #{Regexp.escape(how)} .*: analyse does not use (?:show|cli|collect)\z/, found.first)
    end
  end

  def test_names_of_the_own_layer_come_first
    text = in_analyse("class Text; end; def self.a = Text.new")
    assert_empty planted("lib/pitwall/analyse/tree/text.rb": text).forbidden(LAYERS)
  end

  def test_a_file_in_no_layer_is_found
    error = assert_raises(KeyError) { planted("lib/pitwall/new.rb": "Pitwall::Record").forbidden(LAYERS) }
    assert_match(%r{lib/pitwall/new.rb is in no layer}, error.message)
  end

  def test_planted_circles_are_found
    texts = { "lib/pitwall/analyse/tree/a.rb": in_analyse("Cost"), "lib/pitwall/analyse/gc/a.rb": in_analyse("Tree") }
    folder = ->(path) { path[%r{\Alib/pitwall/analyse/\w+(?=/)}] }
    assert_equal [%w[lib/pitwall/analyse/gc lib/pitwall/analyse/tree]], planted(**texts).circles(&folder)
    texts.each { |path, text| assert_empty planted(path => text).circles(&folder) }
  end

  def test_planted_impurities_are_found
    uses = {
      "File.read('x')" => "File.read", "File.expand_path('x')" => "File.expand_path", "Dir.pwd" => "Dir.pwd",
      "ENV['x']" => "ENV", "Time.now" => "Time.now", "Process.clock_gettime 1" => "Process.clock_gettime",
      "Random.new.rand" => "Random.new", "IO.popen('x')" => "IO.popen", "::File.write('x', 1)" => "File.write",
      "rand(3)" => "rand", "puts 1" => "puts", "`date`" => "`", "$stderr << 1" => "$stderr", "sleep 1" => "sleep"
    }
    uses.each do |text, use|
      found = impure(planted("lib/pitwall/analyse/gc/new.rb": in_analyse("def self.a = (#{text})")))
      assert_equal ["lib/pitwall/analyse/gc/new.rb:2 uses #{use}"], found, text
      assert_empty impure(planted("lib/pitwall/cli/new.rb": text))
    end
    ["File.basename('x')", "Math.sqrt(2)", "Struct.new(:file).new(1).file", "Math::PI"].each do |text|
      assert_empty impure(planted("lib/pitwall/analyse/gc/new.rb": text)), text
    end
  end

  def test_planted_options_are_found
    words = { "raise 'too many: --limit 3'" => ["--limit"], "\"(\#{1} more, --limit)\"" => ["--limit"],
              "\"--\#{1}\"" => ["--"], "%w[git log --stat]" => [], "%w[git add --]" => [], "'a --- b'" => [],
              "1 # --limit" => [] }
    words.each do |text, expected|
      found = options_below(planted("lib/pitwall/show/new.rb": text))
      assert_equal expected, found.fetch("show/new.rb", []), text
    end
  end
end
