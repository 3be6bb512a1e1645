# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/fastboot_program"

# Ruby 3.3 and newer keeps the real paths of files in a Hash. The accelerator adds files whose paths have no symbolic
# link, and no others.
class FastbootRealPathsTest < Minitest::Test
  include FastbootProgram

  KEPT = RUBY_VERSION.to_f >= 3.3

  # The program loads all kinds of files: plain ones, a link, files in a folder that is a link, and paths with "..".
  # Then the program makes a link lead elsewhere, replaces a folder by a link, and loads again. Some of the names are no
  # plain Strings: of a subclass, or with an instance variable or a method. Files are loaded by `require`,
  # `require_relative` and `autoload`. The program leaves all links and folders as they were.
  PROGRAM = <<~'RUBY'
    $LOAD_PATH.unshift("#{Dir.pwd}/plain", "#{Dir.pwd}/current/lib")
    asked = lambda do |name|
      [name, require(name)]
    rescue LoadError, EncodingError => error
      [name, error.class]
    end
    results = ["one", "one.rb", "#{Dir.pwd}/plain/one", "#{Dir.pwd}/plain/two.rb", "#{Dir.pwd}/plain/../plain/three",
               "released", "#{Dir.pwd}/releases/1/lib/released", "#{Dir.pwd}/plain/link", "#{Dir.pwd}/plain/target",
               "#{Dir.pwd}/plain//four", "five".encode("US-ASCII"), "#{Dir.pwd}/plain/six".encode("UTF-16LE"),
               "none", "#{Dir.pwd}/plain/none", "#{Dir.pwd}/plain", "\u00fcn\u00efcode"].map(&asked)
    $LOADED_FEATURES << "#{Dir.pwd}/plain/seven.rb" # Ruby looks for all real paths anew
    results += ["seven", "one", "eight"].map(&asked)
    File.unlink("current")
    File.symlink("releases/2", "current")
    results += ["released", "later", "#{Dir.pwd}/releases/2/lib/later"].map(&asked)
    class Name < String; end
    odd = [Name.new("#{Dir.pwd}/plain/nine.rb"), +"#{Dir.pwd}/plain/ten", +"#{Dir.pwd}/plain/eleven.rb", +"twelve"]
    odd[1].instance_variable_set(:@note, 1)
    odd[2].define_singleton_method(:eql?) { |_| raise "asked" }
    results += odd.map(&asked) + odd.map(&:frozen?)
    autoload :Thirteen, "#{Dir.pwd}/plain/thirteen"
    results << Object.const_get(:Thirteen)
    require "#{Dir.pwd}/moved/early"
    File.rename("moved", "gone")
    File.symlink("gone", "moved")
    sleep 1.1 # folders are known for a second
    results += ["#{Dir.pwd}/moved/late", "#{Dir.pwd}/gone/late"].map(&asked)
    require "#{Dir.pwd}/beside/main"
    own = $LOADED_FEATURES.grep(/#{Regexp.escape(Dir.pwd)}/)
    p results, DIRS, own, own.map(&:encoding), own.map(&:frozen?)
    File.unlink("current", "moved")
    File.symlink("releases/1", "current")
    File.rename("gone", "moved")
  RUBY

  def setup
    super
    code = "(DIRS ||= []) << [__FILE__, __dir__, __dir__.encoding, __method__.inspect]"
    names = %w[one two three target four five six seven eight nine ten eleven twelve ünïcode]
    names = names.map { |name| "plain/#{name}.rb" }
    names += %w[releases/1/lib/released.rb releases/2/lib/released.rb releases/2/lib/later.rb
                moved/early.rb moved/late.rb]
    write_files(names.to_h { |name| [name, code] }.merge("plain/thirteen.rb" => "Thirteen = [__FILE__, __dir__]"))
    relative = %w[a link real ../beside/b c].map { |name| "require_relative '#{name}'; " }.join
    write_files("beside/main.rb" => relative, **%w[a b c real].to_h { |name| ["beside/#{name}.rb", code] })
    File.symlink("target.rb", file("plain/link.rb"))
    File.symlink("real.rb", file("beside/link.rb"))
    File.symlink("releases/1", file("current"))
  end

  # How many files were added while the program ran. Before it, the support's own file may be added.
  def added(found, env: {})
    found.counts["real_paths"].to_i - boot("-e", "1", env: env).counts["real_paths"].to_i
  end

  def test_files_are_the_same_as_without_the_accelerator
    [{}, { "LC_ALL" => "C" }].each do |env|
      expected = plain("-e", PROGRAM, env: env)
      assert_equal "exit 0", expected.status, expected.err
      2.times do
        found = boot("-e", PROGRAM, env: env)
        assert_same expected, found
        assert_equal KEPT, added(found, env: env).positive?
      end
    end
  end

  # Paths of files have the encodings that Ruby gives them, by the name and the locale.
  ENCODINGS = <<~'RUBY'
    encodings = %w[UTF-8 US-ASCII ASCII-8BIT EUC-JP Windows-31J]
    results = encodings.product(encodings, ["e%d", "e%d.rb", "below/e%d", "#{Dir.pwd}/plain/e%d", "#{Dir.pwd}/plain/e%d.rb"])
    results = results.each_with_index.map do |(folder, name, pattern), i|
      name = format(pattern, i).force_encoding(name)
      file = File.expand_path("#{name.delete_suffix(".rb")}.rb", "plain")
      File.write(file, "PLACE = [__FILE__, __dir__, *caller_locations(0, 1).flat_map { |at| [at.path, at.absolute_path] }]")
      $LOAD_PATH.unshift("#{Dir.pwd}/plain".force_encoding(folder))
      loaded = [require(name), require(name), require(file)]
      $LOAD_PATH.shift
      File.unlink(file)
      [*loaded, *Object.send(:remove_const, :PLACE).map { |place| [place, place.encoding] },
       $LOADED_FEATURES.find { |feature| feature.b == file.b }.encoding]
    end
    p results
  RUBY

  def test_encodings_of_paths
    Dir.mkdir(file("plain/below"))
    %w[C C.UTF-8].each do |locale|
      expected = plain("-e", ENCODINGS, env: { "LC_ALL" => locale })
      assert_equal "exit 0", expected.status, expected.err
      assert_operator expected.out.scan("true, false, false").size, :>=, 100, "required once by any name"
      found = boot("-e", ENCODINGS, env: { "LC_ALL" => locale })
      assert_same expected, found, locale
      assert_operator found.counts["found"], :>, 50
    end
  end

  # A folder of $LOAD_PATH becomes a link. Other elements are no real paths from the beginning.
  LOAD_PATH = <<~'RUBY'
    $LOAD_PATH.unshift("#{Dir.pwd}/folder")
    results = [require("first")]
    File.rename("folder", "renamed")
    File.symlink("renamed", "folder")
    $LOAD_PATH.unshift("#{Dir.pwd}/plain")
    results << require("second")
    sleep 1.1 # folders are known for a second
    results << require("third")
    %w[odd odd/ odd/. odd/../odd odd//below/.. folder/below].each_with_index do |entry, i|
      $LOAD_PATH.unshift("#{Dir.pwd}/#{entry}")
      results << require("odd#{i}")
      $LOAD_PATH.shift
    end
    p results, DIRS, $LOADED_FEATURES.grep(/#{Regexp.escape(Dir.pwd)}/)
    File.unlink("folder")
    File.rename("renamed", "folder")
  RUBY

  def test_folders_of_the_load_path
    code = "(DIRS ||= []) << [__FILE__, __dir__]"
    names = %w[first second third below/odd5].map { |name| "folder/#{name}.rb" }
    write_files([*names, *Array.new(5) { |i| "odd/odd#{i}.rb" }, "odd/below/none.rb"].to_h { |name| [name, code] })
    expected = plain("-e", LOAD_PATH)
    assert_equal "exit 0", expected.status, expected.err
    2.times { assert_same expected, boot("-e", LOAD_PATH) }
  end

  # The pack has the files that lie beside a file of `require_relative`. A link and a file that is gone are not added.
  def test_files_beside_a_file_of_require_relative
    program = "require \"\#{Dir.pwd}/beside/main\""
    assert_equal KEPT ? 1 : 0, added(boot("-e", program)), "nothing is in the pack"
    assert_equal KEPT ? 3 : 0, added(boot("-e", program)), "main, b and c"
    write_files("beside/main.rb" => "require_relative 'a'; require_relative 'link'",
                "beside/b.rb" => "raise 'not asked for'")
    File.unlink(file("beside/c.rb"))
    assert_equal KEPT ? 2 : 0, added(boot("-e", program)), "main and b"
    write_files("beside/main.rb" => "require_relative 'a'")
    assert_equal KEPT ? 1 : 0, added(boot("-e", program)), "one file says nothing of the others"
  end

  def test_which_files_are_known
    program = "require \"\#{Dir.pwd}/%s\""
    counts = %w[plain/one plain/two.rb plain/link current/lib/released plain/../plain/one plain//one plain/ünïcode]
             .map { |name| added(boot("-e", format(program, name))) }
    assert_equal(KEPT ? [1, 1, 0, 0, 0, 0, 0] : [0] * 7, counts)
    beside = "RACTOR = Ractor.new { Ractor.receive }; require 'pitwall/fastboot'; #{format(program, "plain/one")}; " \
             "p Pitwall::Fastboot.stats.key?('real_paths')"
    found = plain("-W0", "-e", beside, env: { "PITWALL_BOOT_CACHE" => file("cache") })
    assert_equal ["false\n", "", "exit 0"], found.to_a.first(3), "Ruby's Hash is not looked for"
  end
end
