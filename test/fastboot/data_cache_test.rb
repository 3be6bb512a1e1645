# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/fastboot_program"
require "json"
require "pitwall/fastboot/setup"
require "yaml"

# YAML and JSON files give what the libraries make of them, whether the accelerator has them or not.
class FastbootDataCacheTest < Minitest::Test
  include CommandLine

  LIB = File.join(Checkout::ROOT, "lib")
  STATS = "at_exit { $stderr.puts 'stats ' + Pitwall::Fastboot.stats.inspect }"
  # The accelerator looks for Psych and JSON when a file is loaded. Files of a test have just been written.
  START = 'require "yaml"; require "json"; load "./empty.rb"'
  ONE = { "a" => 1 }.inspect # of "a: 1"
  SEVENS = { 7 => 7 }.inspect
  FRESH = FastbootProgram::NOT_FRESH

  def setup
    super
    assert_nil Pitwall::Fastboot.unavailable
    File.write(file("empty.rb"), "")
  end

  def boot(*arguments, env: {}, options: [], start: START)
    capture({ "PITWALL_BOOT_CACHE" => file("cache"), **env }, RUBY, *options, "-I#{LIB}", "-rpitwall/fastboot",
            "-e", "#{STATS}; #{FRESH}; #{start}", *arguments)
  end

  def stats(result) = eval(result.err[/^stats (\{.*\})$/, 1])

  def hits(result) = stats(result).values_at("data_hit", "data_hit_by_content").compact.sum

  def assert_out(expected, result)
    assert_equal [expected, true], [result.out, result.status.success?], result.err
  end

  # Boots twice: the first stores, the second is answered from the pack.
  def assert_same_twice(expected, program, hits: 1)
    results = Array.new(2) { boot("-e", program) }
    results.each { |result| assert_out(expected, result) }
    assert_equal hits, hits(results.last), stats(results.last).inspect
    results.last
  end

  # Files whose results differ in every way that is known, and random ones.
  DOCUMENTS = {
    "a.yml" => "base: &b\n  x: 1\n  list: [a, 'b', \"c\"]\ndev:\n  <<: *b\n  y: ~\n" \
               "both: [*b, *b]\ntext: &t hello\nt2: *t\n",
    "alone.yml" => "just text",
    "empty.yml" => "",
    "comment.yml" => "# nothing\n",
    "none.yml" => "---\n...\n",
    "false.yml" => "false",
    "nil.yml" => "~",
    "symbols.yml" => ":a: :b\n:'c d': ':e'\nf: :é\n",
    "numbers.yml" => "[0, -1, 1_000, 0x1f, 017, 1:30, 1.5, -0.0, 1e3, 1.0e+3, .inf, -.inf, " \
                     "123456789012345678901234567890, -4611686018427387904, -4611686018427387905, " \
                     "4611686018427387903, 4611686018427387904]",
    "nan.yml" => "[.nan]",
    "numbers_twice.yml" => "- [&x 1.0e+300, *x, &y 1.5, *y, &z .inf, *z]\n- [1.0e+300, .inf, 1.5, 7]\n",
    "integers_twice.yml" => "- [&x 123456789012345678901234567890, *x]\n- [&y 7, *y]\n",
    "keys.yml" => "1: a\n1.5: b\ntrue: c\n~: d\n1: e\n",
    "keys2.yml" => "? [a]\n: 1\n? {b: 1}\n: 2\n",
    "dates.yml" => "d: 2024-02-29\nt: 2024-02-29 10:00:00 Z\n",
    "ymd.yml" => "[2024-13-45, 10:00, yes, NO, on, null, Null]",
    "key_alias.yml" => "- &k name\n- {*k : 1}\n- {name: *k}\n",
    "recursive.yml" => "&r\n- 1\n- *r\n- {self: *r}\n",
    "tag.yml" => "a: !ruby/object:Object {}\n",
    "str.yml" => "a: !!str 12\nb: !custom 3\n",
    "old.yml" => "a: ! 'yes'\nb: ! \"12\"\nc: ! 12\nd: ! [1]\n! e: !!str 1.0\nf: !!int '3'\ng: !!float 1\n" \
                 "h: !!null x\n",
    "later.yml" => "a: 1\n---\nb: !!str [\n",
    "text_map.yml" => "a: !!str {str: foo}\n",
    "old_tags.yml" => "- ! x\n- !str y\n- !<!> z\n- !!bool 'yes'\n- !!float 'x'\n- !!int 12.7\n- ! {a: 1}\n",
    "set.yml" => "!ruby/set\nhash: {a: true}\n",
    "binary.yml" => "a: !binary aGVsbG8=\n",
    "regexp.yml" => "- !ruby/regexp /a/\n",
    "omap.yml" => "!omap\n- a: 1\n",
    "hidden.yml" => "a: !ruby/object:Object {}\na: 1\n",
    "marks.yml" => "a: Hello!\nb: 'Allô !'\nc: \"a !b\"\nd: a!b\n",
    "bom.yml" => "\uFEFFa: é!\n",
    "latin.yml" => "a: \xE9\n".b,
    "utf16.yml" => "a: b !\n".encode("UTF-16LE"),
    "wrong.yml" => "a: [1\nb: {",
    "alias.yml" => "a: *none\n",
    "tabs.yml" => "a:\n\t- b\n",
    "crlf.yml" => "a: 1\r\nb: |\r\n  x\r\n  y\r\n",
    "escapes.yml" => "a: \"\\0\\x41\\u00e9\\U0001F600\\n\"\nb: >\n  folded\n  text\n",
    "two.yml" => "a: 1\n---\nb: 2\n",
    "deep.yml" => "#{"[" * 95}#{"]" * 95}",
    "deeper.yml" => "#{"[" * 150}#{"]" * 150}",
    "tilde.yml" => "~: ~\n",
    "long.yml" => "a: #{"x" * 5000}\nb: #{"é" * 200}\n",
    "many.yml" => (0..300).map { |i| "k#{i}: v#{i % 7}\n" }.join,
    "a.json" => '{"a": [1, -2.5, 1e400, null, true, false, "x", "", {"a": {}}], "é": "\u00e9\ud83d\ude00"}',
    "twice.json" => '{"a": 1, "a": 2}',
    "text.json" => '"x"',
    "number.json" => "12",
    "null.json" => "null",
    "empty.json" => "",
    "wrong.json" => '{"a": ',
    "nan.json" => "[NaN]",
    "inf.json" => "[Infinity, -Infinity]",
    "bad.json" => "{\"a\": \"\xFF\"}".b,
    "class.json" => '{"json_class": "Range", "a": [1, 2, false]}',
    "deep.json" => "#{"[" * 99}#{"]" * 99}",
    "deeper.json" => "#{"[" * 101}#{"]" * 101}",
    "big.json" => "[123456789012345678901234567890, 0.1, -0.0, 1E2]",
    "comment.json" => "/* a */ [1]",
    "bom.json" => "\uFEFF[1]",
    "keys.json" => (0..40).to_h { |i| ["k#{i}", i] }.to_json
  }.freeze

  # A method with different options.
  CALLS = [
    [:load_file, {}], [:load_file, { symbolize_names: true }], [:load_file, { aliases: true }],
    [:load_file, { freeze: true, aliases: true }],
    [:load_file, { permitted_classes: [Symbol, "Date", "Time"], aliases: true }], [:load_file, { fallback: 7 }],
    [:safe_load_file, {}], [:safe_load_file, { permitted_symbols: %i[a b], permitted_classes: [Symbol] }],
    [:safe_load_file, { aliases: true, symbolize_names: true, freeze: true, filename: "other" }],
    [:unsafe_load_file, {}], [:unsafe_load_file, { symbolize_names: true, freeze: true }],
    [:unsafe_load_file, { fallback: [1] }],
    [:unsafe_load_file, { nonsense: 1 }]
  ].freeze
  JSON_CALLS = [
    [:load_file, {}], [:load_file, { symbolize_names: true }], [:load_file, { freeze: true }],
    [:load_file, { max_nesting: 3 }],
    [:load_file, { allow_nan: true }], [:load_file!, {}], [:load_file!, { symbolize_names: true, freeze: true }],
    [:load_file, { create_additions: true }], [:load_file, { object_class: Struct }]
  ].freeze

  # Compares each call with what the replaced method says.
  COMPARISON = <<~'RUBY'
    require "date"
    # All that a program can tell: classes, order, encodings, what is frozen, what is the same object.
    def picture(value, seen = {}.compare_by_identity)
      return [:again, seen[value]] if seen.key?(value)

      seen[value] = seen.size if [Array, Hash].include?(value.class) || (value.is_a?(String) && !value.frozen?)
      own = [value.class, value.frozen?]
      case value
      when String then [*own, value.encoding, value.b, value.valid_encoding?]
      when Symbol then [*own, value.encoding, value.name.b]
      when Array then [*own, *value.map { |item| picture(item, seen) }]
      when Hash
        pairs = value.map { |pair| pair.map { |item| picture(item, seen) } }
        [*own, value.default, value.compare_by_identity?, *pairs]
      when Float then [*own, [value].pack("G")]
      else [*own, value.inspect.sub(/0x\h+/, "")]
      end
    end

    def outcome
      picture(yield)
    rescue Exception => error
      [error.class, error.message.b.gsub(/fd:\d+|0x\h+/n, "")]
    end

    def objects(value, found = {}.compare_by_identity)
      return found if found[value] || value.frozen? && !value.is_a?(Enumerable)

      found[value] = true
      value.each { |item| Array(item).each { |part| objects(part, found) } } if value.is_a?(Enumerable)
      found
    end

    def compare(mod, method, file, options)
      before = method.end_with?("!") ? "pitwall_#{method[0..-2]}_before!" : "pitwall_#{method}_before"
      expected = outcome { mod.send(before, file, **options) }
      2.times do
        found = outcome { mod.public_send(method, file, **options) }
        puts "#{mod}.#{method} #{file} #{options}: #{found} instead of #{expected}" if found != expected
      end
      return if options[:freeze] || options[:fallback] || expected.first.is_a?(Class) && expected.first <= Exception

      first, second = Array.new(2) { objects(mod.public_send(method, file, **options)) }
      puts "#{mod}.#{method} #{file}: shared" if first.keys.any? { |object| !object.frozen? && second.key?(object) }
    end
  RUBY

  LETTERS = [*"a".."z", "é", "日", " ", "\n", ":", "!", "\u{1F600}"].freeze

  def random_value(random, depth)
    case depth.zero? ? random.rand(8) : random.rand(13)
    when 0 then random.rand(-100..100)
    when 1 then random.rand(2)**random.rand(2..130)
    when 2 then (random.rand - 0.5) * (10**random.rand(-300..300))
    when 3 then [nil, true, false, "", "~", "yes", "!x", "a: b", "#"].sample(random: random)
    when 4 then "t#{random.rand(100)}".to_sym
    when 5..7 then Array.new(random.rand(12)) { LETTERS.sample(random: random) }.join
    when 8 then @earlier.sample(random: random)
    when 9, 10 then keep(Array.new(random.rand(6)) { random_value(random, depth - 1) })
    else keep(Array.new(random.rand(12)) { ["k#{random.rand(40)}", random_value(random, depth - 1)] }.to_h)
    end
  end

  def keep(value) = value.tap { @earlier << value }

  def write_documents
    DOCUMENTS.each { |name, text| File.binwrite(file(name), text) }
    random = Random.new(Minitest.seed)
    30.times do |i|
      @earlier = [nil]
      value = random_value(random, 5)
      File.binwrite(file("random#{i}.yml"), YAML.dump(value))
      File.binwrite(file("random#{i}.json"), JSON.generate([value]))
    end
  end

  def test_results_are_those_of_the_libraries
    write_documents
    program = "FILES = Dir['*.{yml,json}'].sort + ['missing.yml', '.', nil, :a]
      #{CALLS.inspect}.each { |method, options| FILES.each { |file| compare(Psych, method, file, options) } }
      #{JSON_CALLS.inspect}.each { |method, options| FILES.each { |file| compare(JSON, method, file, options) } }"
    stored = nil
    internal = "-Eutf-8:iso-8859-1"
    [[], [], ["-Eiso-8859-1"], [internal], [internal], ["-W:deprecated"], ["-w"]].each do |options|
      result = boot("-e", COMPARISON, "-e", program, options: options)
      assert_out("", result)
      stored ||= stats(result)["data_stored"]
    end
    assert_operator stored, :>, 400
    again = boot("-e", COMPARISON, "-e", program)
    assert_out("", again)
    assert_operator hits(again), :>=, stored * 3
    assert_nil stats(again)["data_refused"], again.err
  end

  # Each of them is a change that the file's size does not show.
  def test_no_change_goes_unseen
    File.write(file("a.yml"), "a: 1")
    File.write(file("b.json"), "[1]")
    program = "p YAML.load_file('a.yml'), JSON.load_file('b.json')"
    assert_same_twice("#{ONE}\n[1]\n", program, hits: 2)
    time = Time.at(1_000_000_000)
    [->(path, text) { File.write(path, text) },
     ->(path, text) { File.write("#{path}.new", text) && File.rename("#{path}.new", path) },
     ->(path, text) { File.write("#{path}.2", text) && File.unlink(path) && File.symlink("#{path}.2", path) }]
      .each_with_index do |change, i|
        change.call(file("a.yml"), "a: #{i + 2}")
        change.call(file("b.json"), "[#{i + 2}]")
        %w[a.yml b.json].each { |name| File.utime(time, time, file(name)) }
        assert_same_twice("#{{ "a" => i + 2 }}\n[#{i + 2}]\n", program, hits: 2)
      end
  end

  # Relative paths, links and `..` lead where the kernel leads.
  def test_paths
    %w[app app/one app/two].each { |name| Dir.mkdir(file(name)) }
    File.write(file("app/one/a.yml"), "one")
    File.write(file("app/two/a.yml"), "two")
    File.write(file("app/a.yml"), "app")
    File.write(file("a.yml"), "here")
    File.symlink(file("app/one"), file("link"))
    program = <<~'RUBY'
      require "pathname"
      ["link/../a.yml", "./a.yml", Pathname("link") + "a.yml", "link/a.yml"].each { |path| puts YAML.load_file(path) }
      Dir.chdir("app") { ["a.yml", "#{Dir.pwd}/a.yml", "two/a.yml"].each { |path| puts YAML.load_file(path) } }
      ["~/a.yml", "a.yml\0"].each { |path| puts((YAML.load_file(path) rescue $!.class)) }
      puts File.open("a.yml") { |file| YAML.load_file(file) }
    RUBY
    assert_same_twice(%w[app here one one app app two Errno::ENOENT ArgumentError here].join("\n") << "\n", program,
                      hits: 8)
    File.unlink(file("link"))
    File.symlink(file("app/two"), file("link"))
    assert_out("\"two\"\n", boot("-e", "p YAML.load_file('link/a.yml')"))
  end

  # The program's own methods come first, whenever it defines them, and whichever way.
  def test_patches
    File.write(file("a.yml"), "a: 1")
    File.write(file("b.json"), "[1]")
    File.write(file("old.yml"), "a: ! '1'\nb: !!str 2\n")
    assert_same_twice("", "YAML.load_file('a.yml'); JSON.load_file('b.json'); JSON.load_file!('b.json'); " \
                          "YAML.load_file('old.yml')", hits: 4)
    yaml, json = "p YAML.load_file('a.yml')", "p JSON.load_file('b.json')"
    old = "p YAML.unsafe_load_file('old.yml'), YAML.load_file('old.yml')"
    usual = capture({}, RUBY, "-e", "#{START}; #{old}").out
    again = 'load "./empty.rb"' # patches come from files
    { "def Psych.load_file(*) = 7; #{yaml}" => "7\n",
      "def JSON.parse(*) = 7; #{again}; #{json}" => "7\n",
      "def Psych.safe_load(*, **) = 7; #{again}; #{yaml}" => "7\n",
      "def Psych.parse(*, **) = nil; #{again}; #{yaml}" => "nil\n",
      "class Psych::ScalarScanner; prepend(Module.new { def tokenize(*) = 7 }); end
       #{again}; #{yaml}" => "#{SEVENS}\n",
      "class Psych::Visitors::ToRuby; def visit_Psych_Nodes_Scalar(o) = 7; end
       #{again}; #{yaml}" => "#{SEVENS}\n",
      "Psych.singleton_class.prepend(Module.new { def load_file(...) = [super] })
       #{yaml}" => "[#{ONE}]\n",
      "class << Psych; alias old load_file; def load_file(...) = [old(...)]; end
       #{yaml}" => "[#{ONE}]\n",
      "class JSON::Ext::Parser; def parse = 7; define_singleton_method(:parse) { |*| 7 }; end
       #{again}; #{json}" => "7\n",
      # As Minitest::Mock does it.
      "class << Psych; alias_method :kept, :load_file; define_method(:load_file) { |*| 7 }; end; #{yaml}
       class << Psych; undef_method :load_file; alias_method :load_file, :kept; undef_method :kept; end
       #{yaml}" => "7\n#{ONE}\n",
      "Psych.add_domain_type('x', 'y') { 7 }; Psych.add_tag('!z', Object)
       #{yaml}" => "#{ONE}\n",
      "Psych.add_tag(nil, Object); #{again}; #{yaml}" => :plain,
      "Psych.add_tag('!', Object); #{again}; #{old}" => :plain,
      "Psych.domain_types['tag:'] = ['tag:', proc { 7 }]; #{again}; #{old}" => :plain,
      "Psych.add_builtin_type('str') { 7 }; #{again}; #{old}" => :plain,
      "p YAML.load_file('a.yml') { 7 }" => "#{ONE}\n",
      "p Psych.clone.load_file('a.yml')" => "#{ONE}\n",
      # As tests do it for a while.
      "class << File; alias kept read; def read(*, **) = '[7]'; end; #{json}
       class << File; alias read kept; end" => "[7]\n",
      "require 'stringio'; class << File; def open(*) = yield(StringIO.new('7')); end; #{yaml}
       class << File; remove_method :open; end" => "7\n",
      "Psych::ScalarScanner.send(:remove_const, :INTEGER); Psych::ScalarScanner::INTEGER = /x/
       #{again}; #{yaml}" => :plain,
      "class Psych::Nodes::Scalar; def value = @value.upcase; end
       #{again}; #{yaml}" => :plain,
      "Psych::Visitors::ToRuby.singleton_class
                              .prepend(Module.new { def create(**) = (def (a = super).accept(_) = 7; a) })
       #{again}; #{yaml}; #{old}" => :plain,
      "Psych::Parser.singleton_class.prepend(Module.new { def new(*) = raise('mine') })
       #{again}; begin; #{yaml}; rescue => e; p e.message; end" => "\"mine\"\n",
      "YAML.load_file('old.yml'); YAML.add_builtin_type('str') { 7 }
       #{old}" => :plain,
      "YAML.load_file('old.yml'); YAML.add_tag('!', Object)
       #{old}" => :plain,
      "class << RubyVM::InstructionSequence; def load_iseq(path) = RubyVM::InstructionSequence.compile_file(path); end
       File.write('patch.rb', 'def Psych.safe_load(*, **) = 7')
       #{yaml}; load './patch.rb'; #{yaml}" => "#{ONE}\n7\n"
    }.each do |program, expected|
      expected = capture({}, RUBY, "-e", "#{START}; #{program}").out if expected == :plain
      result = boot("-e", program)
      assert_equal expected, result.out, "#{program}\n#{result.err}"
      clean = boot("-e", "#{yaml}; #{json}; #{old}")
      assert_equal "#{ONE}\n[1]\n#{usual}", clean.out, "after #{program}"
    end
  end

  # What is replaced before the accelerator looks at the library.
  def test_early_patches
    File.write(file("a.yml"), "a: 1_0")
    ["Psych::Visitors::ToRuby.class_eval('def accept(_) = 7')",
     "class Psych::Nodes::Scalar; def value = @value.upcase; end", "Psych::Nodes.send(:remove_const, :Alias)",
     "Psych::ScalarScanner.send(:remove_const, :INTEGER); Psych::ScalarScanner::INTEGER = /x/",
     "class << File; def open(*) = yield('7'); end"].each do |patch|
      start = "require 'yaml'; #{patch}; load './empty.rb'"
      program = "p YAML.load_file('a.yml')"
      expected = capture({}, RUBY, "-e", "#{start}; #{program}").out
      2.times { assert_equal expected, boot("-e", program, start: start).out, patch }
      assert_equal "#{{ "a" => 10 }.inspect}\n", boot("-e", program).out, "after #{patch}"
    end
  end

  # Warnings of the library appear with -w, whatever the pack has.
  def test_verbose
    File.write(file("a.json"), "[1e400]")
    program = "p JSON.load_file('a.json')"
    [[], [], ["-w"], ["-w"], []].each do |options|
      expected = capture({}, RUBY, *options, "-e", START, "-e", program)
      found = boot("-e", program, options: options)
      assert_equal(*[expected, found].map { |result| [result.out, result.err.scan(/out of range/).size] })
    end
  end

  def test_a_changed_library_is_left_alone
    File.write(file("a.yml"), "a: 1")
    ["def Psych.load_file(*) = 7", "class Psych::ScalarScanner; def tokenize(*) = 7; end"].each do |patch|
      result = capture({ "PITWALL_BOOT_CACHE" => file("cache") }, RUBY, "-ryaml", "-I#{LIB}", "-e", patch, "-e",
                       "require 'pitwall/fastboot'; #{STATS}; #{FRESH}; load './empty.rb'; p YAML.load_file('a.yml')")
      assert_match(/7/, result.out)
      assert_match(/no cache of data: /, stats(result)["reasons"].join)
    end
    assert_equal 0, hits(boot("-e", "p YAML.load_file('a.yml')"))
  end

  # Backtraces, warnings and `-w` name no file of the library.
  def test_nothing_of_it_is_seen
    File.write(file("a.yml"), "a: [")
    File.write(file("b.yml"), "a: 1")
    File.write(file("twice.json"), '{"a": 1, "a": 2}')
    program = "YAML.load_file('b.yml'); JSON.load_file('twice.json'); YAML.load_file('a.yml')"
    expected = capture({}, RUBY, "-W:deprecated", "-w", "-e", "$VERBOSE = true; #{START}; #{program}").err
    own_frame = /^\tfrom -e:2:in .*load_file'\n/ # in the line of the call, as methods in C have it
    2.times do
      result = boot("-e", program, options: %w[-W:deprecated -w])
      assert_equal 1, result.err.scan(own_frame).size, result.err
      found = result.err.sub(own_frame, "").lines.grep_v(/^stats /).join
      assert_equal expected.gsub(/-e:1:/, "-e:N:"), found.gsub(/-e:[12]:/, "-e:N:")
    end
    result = boot("-e", "p YAML.method(:load_file).call('b.yml'), caller(0)")
    refute_match(/fastboot/, result.out)
  end

  def test_damaged_packs
    write_documents
    program = "Dir['*.yml'].each { |f| #{CALLS.first(2)}.each { |c| compare(Psych, c[0], f, c[1]) } }"
    boot("-e", COMPARISON, "-e", program)
    pack = Dir[file("cache/*.pack")].first
    good = File.binread(pack)
    random = Random.new(Minitest.seed)
    results = Array.new(8) do
      bytes = good.dup
      30.times { bytes.setbyte(random.rand((bytes.size / 2)..bytes.size - 1), random.rand(256)) }
      File.binwrite(pack, bytes)
      boot("-e", COMPARISON, "-e", program).tap { |result| assert_out("", result) }
    end
    counts = results.flat_map { |result| stats(result).values_at("data_damaged", "data_missing") }
    assert_operator counts.compact.sum, :>, 0
  end

  # A file that is not plain is parsed for the pack once, not in each boot.
  def test_what_is_not_plain_is_known
    File.write(file("later.yml"), DOCUMENTS["later.yml"])
    later = Array.new(2) { boot("-e", "p YAML.load_file('later.yml')") }
    assert_equal [{ "data_missing" => 1, "data_not_plain" => 1 }, { "data_not_plain" => 1 }],
                 (later.map { |result| stats(result).select { |name, _| name.start_with?("data_") } })
    File.write(file("a.yml"), "- !ruby/symbol x\n")
    results = Array.new(3) { boot("-e", "p YAML.unsafe_load_file('a.yml')") }
    results.each { |result| assert_out("[:x]\n", result) }
    counts = results.map { |result| stats(result).slice("data_missing", "data_not_plain", "data_stored") }
    assert_equal [{ "data_missing" => 1, "data_not_plain" => 1 }, { "data_not_plain" => 1 }, { "data_not_plain" => 1 }],
                 counts
    File.write(file("a.yml"), "- x1\n")
    assert_out("[\"x1\"]\n", boot("-e", "p YAML.unsafe_load_file('a.yml')"))
    assert_equal 1, hits(boot("-e", "p YAML.unsafe_load_file('a.yml')"))
  end

  # What can't be read is stored anew.
  def test_bytes_that_are_refused
    File.write(file("a.yml"), "a: 1")
    wrong = "Pitwall::Fastboot::ParsedData.singleton_class.prepend(Module.new { def dump(*) = 'x'.b })"
    program = "p YAML.load_file('a.yml')"
    results = ["#{wrong}; #{START}", START, START].map { |start| boot("-e", program, start: start) }
    results.each { |result| assert_out("#{ONE}\n", result) }
    counts = results.map { |result| stats(result).slice("data_stored", "data_refused") }
    assert_equal [{ "data_stored" => 1 }, { "data_stored" => 1, "data_refused" => 1 }, {}], counts
    assert_match(/a\.yml: ArgumentError: damaged data/, stats(results[1])["reasons"].join)
    assert_equal 1, hits(results.last)
  end

  # Bytes with a right checksum are never damaged. If they were, that is an exception and nothing else.
  def test_damaged_data_is_refused
    plain = Pitwall::Fastboot::PlainData
    random = Random.new(Minitest.seed)
    outcomes = Array.new(3000) do
      @earlier = [nil]
      value = random_value(random, 4)
      bytes = plain.dump(value, frozen: false) or next
      assert_equal [value], [Pitwall::Fastboot::Native.plain_data(bytes, false)]
      random.rand(1..3).times { bytes.setbyte(random.rand(bytes.size), random.rand(256)) }
      bytes = bytes[0, random.rand(bytes.size + 1)] if random.rand(3).zero?
      Pitwall::Fastboot::Native.plain_data(bytes, random.rand(2).zero?)
      :read
    rescue ArgumentError, FloatDomainError, EncodingError => error
      error.message
    end
    assert_operator outcomes.count("damaged data"), :>, 500
    ["", "a\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F", "s\x05a", "#{"a\x01" * 200}n", "r\x00", "nn"].each do |bytes|
      assert_raises(ArgumentError) { Pitwall::Fastboot::Native.plain_data(bytes.b, false) }
    end
  end

  def test_reading_under_gc_stress
    value = [{ "a" => ["b" * 40, 1.5, :"sym #{Process.pid}", 1 << 80] }, [+"x", +"é"]] * 2
    bytes = Pitwall::Fastboot::PlainData.dump(value, frozen: false)
    expected = Pitwall::Fastboot::Native.plain_data(bytes, false)
    GC.stress = true
    found = Array.new(3) { Pitwall::Fastboot::Native.plain_data(bytes, true) }
    GC.stress = false
    assert_equal [expected] * 3, found
  ensure
    GC.stress = false
  end

  # Other Ractors parse for themselves.
  def test_ractors
    File.write(file("b.json"), "[1]")
    program = "Warning[:experimental] = false; ractor = Ractor.new { JSON.load_file('b.json') }; " \
              "p ractor.respond_to?(:value) ? ractor.value : ractor.take"
    2.times do
      result = boot("-e", "JSON.load_file('b.json')", "-e", program)
      expected = capture({}, RUBY, "-rjson", "-e", program)
      assert_equal [expected.out, expected.status.success?], [result.out, result.status.success?], result.err
    end
  end

  def test_what_is_not_plain
    own = Class.new(String).new("x")
    with_variable = "x".dup.tap { |text| text.instance_variable_set(:@a, 1) }
    [own, with_variable, Object.new, "x".dup.force_encoding("iso-8859-1"), { [1] => 2 }, Hash.new(1), Hash.new { 2 },
     {}.compare_by_identity, 0.0 / 0, { 0.0 / 0 => 1 }, "x".freeze, [].freeze, Time.now, 1r,
     Class.new(Array).new, Class.new(Hash).new, "\xE9".dup.force_encoding("iso-8859-1").to_sym].each do |value|
      assert_nil Pitwall::Fastboot::PlainData.dump([value], frozen: false), value.inspect
    end
    assert_nil Pitwall::Fastboot::PlainData.dump(["x".dup].freeze, frozen: true)
  end

  def test_forks_threads_and_flush
    8.times { |i| File.write(file("f#{i}.yml"), "n: #{i}") }
    program = <<~'RUBY'
      threads = Array.new(4) { |i| Thread.new { p YAML.load_file("f#{i}.yml") == { "n" => i } } }
      threads.each(&:join)
      Pitwall::Fastboot.flush
      pids = (4..7).map { |i| fork { p YAML.load_file("f#{i}.yml") == { "n" => i } } }
      pids.each { |pid| Process.wait(pid) }
    RUBY
    2.times { assert_out("true\n" * 8, boot("-e", program)) }
    result = boot("-e", "8.times { |i| p YAML.load_file('f' + i.to_s + '.yml') }")
    assert_equal 8, result.out.lines.size
    assert_operator hits(result), :>=, 4 # writers who find the lock taken store nothing
  end

  def test_files_that_were_just_made_are_not_stored
    File.write(file("a.yml"), "a: 1")
    results = Array.new(2) do
      capture({ "PITWALL_BOOT_CACHE" => file("cache") }, RUBY, "-I#{LIB}", "-rpitwall/fastboot",
              "-e", "#{STATS}; #{START}", "-e", "File.write('a.yml', 'a: 1'); 3.times { YAML.load_file('a.yml') }")
    end
    results.each { |result| assert_equal [3, nil], stats(result).values_at("data_fresh", "data_stored") }
  end

  def test_a_file_is_stored_once
    File.write(file("a.yml"), "a: 1")
    File.write(file("tag.yml"), "a: !x 1")
    result = boot("-e", "9.times { YAML.load_file('a.yml'); YAML.load_file('tag.yml') }")
    assert_equal [18, 1, 1], stats(result).values_at("data_missing", "data_stored", "data_not_plain")
  end

  # Another thread's exception while a file is read from the pack is the program's.
  def test_exceptions_of_other_threads
    File.write(file("a.yml"), (0..2000).map { |i| "k#{i}: v#{i}\n" }.join)
    boot("-e", "YAML.load_file('a.yml')")
    result = boot("-e", <<~'RUBY')
      stops = [StandardError, LoadError, NoMemoryError, SystemStackError].map { |kind| Class.new(kind) }
      caught, started = 0, Queue.new
      12.times do |i|
        stop = stops[i % stops.size]
        thread = Thread.new do
          Thread.current.report_on_exception = false
          Thread.handle_interrupt(stop => :never) do
            started << true
            Thread.handle_interrupt(stop => :immediate) { loop { YAML.load_file("a.yml") } }
          end
        rescue stop
          :stopped
        end
        started.pop
        sleep 0.001
        thread.raise(stop)
        caught += 1 if thread.value == :stopped
      end
      p caught
    RUBY
    assert_out("12\n", result)
    assert_nil stats(result)["data_refused"]
  end

  def test_options_of_setup
    File.write(file("a.yml"), "a: 1")
    File.write(file("b.json"), "[1]")
    load = "require 'yaml'; require 'json'; load './empty.rb'; YAML.load_file('a.yml'); JSON.load_file('b.json')"
    { "compile_cache_yaml: false" => 1, "compile_cache_json: false" => 1, "compile_cache_iseq: false" => 2,
      "compile_cache_yaml: false, compile_cache_json: false" => nil, "readonly: true" => nil }.each do |options, stored|
      result = capture({ "PITWALL_BOOT_CACHE" => file("cache#{options.hash}") }, RUBY, "-I#{LIB}",
                       "-rpitwall/fastboot/setup", "-e", "#{STATS}; Pitwall::Fastboot.setup(#{options})",
                       "-e", "#{FRESH}; #{load}")
      assert_equal stored ? [stored] : [nil], [stats(result)["data_stored"]], "#{options} #{result.err}"
    end
  end

  # Code and data of one file do not take each other's place. The command counts both.
  def test_code_and_data_share_a_pack
    File.write(file("a.rb"), "[1]")
    env = { "PITWALL_BOOT_CACHE" => file("cache") }
    2.times { assert_out("[1]\n", boot("-e", "load './a.rb'; p JSON.load_file('a.rb')")) }
    result = boot("-e", "load './a.rb'; p JSON.load_file('a.rb')")
    assert_equal 1, hits(result)
    assert_operator stats(result).values_at("hit", "hit_by_content").compact.sum, :>=, 2
    facts = JSON.parse(pitwall("boot", "cache", "stats", "--format", "json", env: env).out)
    assert_equal 1, facts["pack"]["data_files"]
    assert_operator facts["pack"]["files"], :>=, 3
    assert_match(/YAML and JSON files whose data came from the pack|data files whose attributes had changed/,
                 pitwall("boot", "cache", "stats", env: env).out)
    assert_match(/\d+ current/, pitwall("boot", "cache", "verify", env: env).out)
    File.write(file("a.rb"), "[2]")
    assert_match(/ 2 changed/, pitwall("boot", "cache", "verify", env: env).out)
    failed = pitwall("boot", "cache", "verify", "--boot", "--", RUBY, "-e", "exit 4", env: env)
    assert_equal [4, "not compared: the command failed without the accelerator\n"],
                 [failed.status.exitstatus, failed.out.lines.last]
    pitwall("boot", "cache", "build", "--frozen", "--", RUBY, "-e", "load './a.rb'", env: env)
    assert_match(/, frozen\nprograms that use a frozen pack report nothing/,
                 pitwall("boot", "cache", "stats", env: env).out)
    facts = JSON.parse(pitwall("boot", "cache", "stats", "--format", "json", env: env).out)
    assert_equal [true, nil], [facts.dig("pack", "frozen"), facts.fetch("last_boot")]
  end

  def test_a_build_that_fails_freezes_nothing
    File.write(file("a.rb"), "1")
    env = { "PITWALL_BOOT_CACHE" => file("cache") }
    { "exit 3" => "it ended with 3", "Process.kill(:TERM, $$); sleep" => "SIGTERM ended it" }.each do |code, why|
      failed = pitwall("boot", "cache", "build", "--frozen", "--", RUBY, "-e", "load './a.rb'; #{code}", env: env)
      assert_match(/\Apitwall: .*\.pack: not frozen, because the command failed \(#{why}\)\n\z/, failed.err)
      assert_match(/ bytes\n\z/, failed.out)
      assert_equal code.start_with?("exit"), failed.status.exitstatus == 3
    end
    refute_match(/, frozen/, pitwall("boot", "cache", "stats", env: env).out)
  end

  # The statuses are the shell's.
  def test_a_build_without_a_command_to_run
    env = { "PITWALL_BOOT_CACHE" => file("cache"), "PITWALL_DEBUG" => nil }
    File.write(file("a.rb"), "1")
    { "./no/such" => [127, /command not found/], "./a.rb" => [126, /not executable/] }.each do |name, (status, why)|
      [%w[build], %w[build --frozen]].each do |words|
        result = pitwall("boot", "cache", *words, "--", name, env: env)
        assert_one_line status, why, result
      end
    end
  end

  def test_a_build_that_stores_nothing_says_why
    env = { "PITWALL_BOOT_CACHE" => file("empty"), "PITWALL_DEBUG" => nil }
    failed = pitwall("boot", "cache", "build", "--", RUBY, "-e", "exit! 3", env: env)
    assert_match(/\Apitwall: .*: the command stored nothing \(it ended with 3\)\n/, failed.err)
    assert_equal 3, failed.status.exitstatus
    nothing = pitwall("boot", "cache", "build", "--", RUBY, "-e", "exit! 0", env: env)
    assert_one_line 4, /the command stored nothing \(it ended with 0\)/, nothing
  end

  def test_a_build_that_may_not_write_does_not_run_the_command
    env = { "PITWALL_BOOT_CACHE" => file("none"), "PITWALL_BOOT_CACHE_READONLY" => "1", "PITWALL_DEBUG" => nil }
    build = %w[boot cache build --] + [RUBY, "-e", "File.write('ran', '')"]
    assert_one_line 2, /PITWALL_BOOT_CACHE_READONLY is set: unset it to build/, pitwall(*build, env: env)
    no_folder = { "PITWALL_BOOT_CACHE" => "/proc/none", "PITWALL_DEBUG" => nil }
    assert_one_line 2, %r{cannot make /proc/none: No such file or directory}, pitwall(*build, env: no_folder)
    refute_path_exists file("ran")
  end

  # The report can't be renamed, because a folder has its name. A full disk ends in the same code.
  def test_a_report_that_cannot_be_written_leaves_nothing
    Dir.mkdir(file("kept"))
    Dir.mkdir(file("kept/last-boot"))
    File.write(file("kept/last-boot/file"), "")
    boot("-e", "1", env: { "PITWALL_BOOT_CACHE" => file("kept") })
    assert_empty Dir[file("kept/*.new")]
  end

  def test_a_frozen_pack_serves_without_looking
    File.write(file("a.yml"), "a: 1")
    File.write(file("main.rb"), "#{FRESH} if defined?(Pitwall::Fastboot)\n#{START}; p YAML.load_file('a.yml')")
    env = { "PITWALL_BOOT_CACHE" => file("cache") }
    result = pitwall("boot", "cache", "build", "--frozen", "--", RUBY, "main.rb", env: env)
    assert_match(/frozen/, result.out, result.err)
    File.unlink(file("a.yml"))
    assert_out("#{ONE}\n", boot("-e", "p YAML.load_file('a.yml')"))
  end

  # Methods are counted with their own arity.
  def test_both_boots_are_the_same
    File.write(file("main.rb"), "#{START}; YAML.load_file('a.yml'); JSON.load_file('b.json')")
    File.write(file("a.yml"), "a: 1")
    File.write(file("b.json"), "[1]")
    boot("-e", "1")
    env = { "PITWALL_BOOT_CACHE" => file("cache") }
    result = pitwall("boot", "cache", "verify", "--boot", "--", RUBY, "main.rb", env: env)
    assert_match(/both boots have the same/, result.out, result.err)
  end
end
