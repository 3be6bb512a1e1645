# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"

# Ruby keeps the real paths of files. The accelerator adds those that it knows, and no others.
class FastbootRealPathsTest < Minitest::Test
  include CommandLine

  LIB = File.join(Checkout::ROOT, "lib")
  KEPT = RUBY_VERSION.to_f >= 3.3

  # Plain files; a folder that is a link; a file that is a link; a link to a folder that changes; names with ".."; names
  # that are more than a String; an autoload; a folder in whose place a link is put.
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
    own = $LOADED_FEATURES.grep(/#{Regexp.escape(Dir.pwd)}/)
    p results, DIRS, own, own.map(&:encoding), own.map(&:frozen?)
  RUBY

  def setup
    super
    code = "(DIRS ||= []) << [__FILE__, __dir__, __dir__.encoding, __method__.inspect]"
    names = %w[one two three target four five six seven eight nine ten eleven twelve ünïcode]
    names = names.map { |name| "plain/#{name}.rb" }
    names += %w[releases/1/lib/released.rb releases/2/lib/released.rb releases/2/lib/later.rb
                moved/early.rb moved/late.rb]
    write_files(names.to_h { |name| [name, code] }.merge("plain/thirteen.rb" => "Thirteen = [__FILE__, __dir__]"))
    File.symlink("target.rb", file("plain/link.rb"))
    File.symlink("releases/1", file("current"))
  end

  # @return what the program prints, and the count of the accelerator
  def run_program(program, *options, env: {})
    FileUtils.rm_f([file("current"), *(file("moved") if File.symlink?(file("moved")))])
    File.rename(file("gone"), file("moved")) if File.exist?(file("gone"))
    File.symlink("releases/1", file("current"))
    counted = "#{program}; at_exit { $stderr.puts Pitwall::Fastboot.stats['real_paths'].to_i } if defined?(Pitwall)"
    result = capture({ "PITWALL_BOOT_CACHE" => file("cache"), **env }, RUBY, "-I#{LIB}", *options, "-e", counted)
    assert_predicate result.status, :success?, result.err
    [result.out, result.err[/\A(\d+)\n\z/, 1]]
  end

  def test_files_are_the_same_as_without_the_accelerator
    [{}, { "LC_ALL" => "C" }].each do |env|
      plain, = run_program(PROGRAM, env: env)
      2.times do
        out, count = run_program(PROGRAM, "-rpitwall/fastboot", env: env)
        assert_equal plain, out
        assert_equal KEPT, count.to_i.positive?
      end
    end
  end

  def test_which_files_are_known
    program = "require \"\#{Dir.pwd}/%s\""
    counts = %w[plain/one plain/two.rb plain/link current/lib/released plain/../plain/one plain//one plain/ünïcode]
             .map { |name| run_program(format(program, name), "-rpitwall/fastboot", "--disable-gems").last }
    assert_equal(KEPT ? %w[1 1 0 0 0 0 0] : ["0"] * 7, counts)
    beside = "RACTOR = Ractor.new { Ractor.receive }; require 'pitwall/fastboot'; #{format(program, "plain/one")}"
    assert_equal "0", run_program(beside, "-W0", "--disable-gems").last, "Ruby's Hash is not looked for"
  end
end
