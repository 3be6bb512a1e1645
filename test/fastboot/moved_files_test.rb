# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/fastboot_program"
require "pitwall/fastboot/setup"

# The same files in another folder: a new release, another checkout. Their code comes from the pack, with the new paths
# in it. Ruby compiles a file if its path is a part of a longer text in the code.
class FastbootMovedFilesTest < Minitest::Test
  include FastbootProgram

  FILES = {
    "main.rb" => <<~'RUBY',
      require_relative "lib/witness"
      require_relative "lib/part_of_text"
      require_relative "lib/says"
      require "yaml"
      load "#{__dir__}/lib/empty.rb"
      p YAML.load_file("#{__dir__}/lib/data.yml")
      puts "ends"
    RUBY
    "lib/witness.rb" => <<~'RUBY',
      class Witness
        PLACES = [__FILE__, __dir__, __FILE__.encoding, __dir__.encoding, __FILE__.frozen?, "ü"].freeze
        def call(a, *b, k: 1) = [a, b, k, __method__, __FILE__, caller(0).first, [1].map { |x| caller(0)[x - 1] }]
        class_eval "def made = caller(0)", __FILE__, __LINE__
      end
      code = RubyVM::InstructionSequence.of(Witness.instance_method(:call))
      puts Witness::PLACES.inspect, Witness.new.call(1, 2, k: 3).inspect, Witness.new.made.first, code.path, code.absolute_path
      p Witness.instance_method(:call).source_location, Object.const_source_location(:Witness), 12345678901234567890, 1.5..2
      begin
        nil.foo
      rescue => error
        puts error.full_message(highlight: false)
      end
    RUBY
    "lib/part_of_text.rb" => <<~'RUBY',
      puts "#{__FILE__}:x", /#{__FILE__}/o.source, :"#{__FILE__}".inspect, "a" "#{__FILE__}"
    RUBY
    "lib/says.rb" => "puts 'I am says.rb', __FILE__",
    "lib/empty.rb" => "", "lib/data.yml" => "a: [1, two]"
  }.freeze

  # How many files Ruby compiles in each release. says.rb names itself. In part_of_text.rb Ruby's older parser joins the
  # path with other text.
  COMPILED = RUBY_DESCRIPTION.include?("+PRISM") ? 1 : 2

  # @return [String] the folder of a release
  def release(name)
    write_files(FILES.transform_keys { |path| "#{name}/#{path}" })
    file(name)
  end

  # @return [Hash] counts of the accelerator
  def assert_same_boot(folder, *arguments)
    arguments = ["main.rb"] if arguments.empty?
    expected = plain(*arguments, dir: folder)
    assert_match(/^ends$/, expected.out, expected.err)
    boot(*arguments, dir: folder).tap { |found| assert_same expected, found, found.counts.inspect }.counts
  end

  # `require_relative` would use the real path.
  def assert_same_loads(folder)
    loads = "%w[witness part_of_text says empty].each { |name| load '#{folder}/lib/' + name + '.rb' }; puts 'ends'"
    assert_same_boot(folder, "-e", loads)
  end

  def test_release_folders
    names = ["releases/20261126", "releases/20261127", "elsewhere/#{"deep/" * 40}", "r"]
    folders = names.map { |name| release(name) }
    sleep 3.1 # files of data that have just been made are not stored
    first, *later = folders.map { |folder| assert_same_boot(folder) }
    assert_nil first["hit_moved"]
    later.each do |counts|
      assert_operator counts["hit_moved"], :>=, 2, counts.inspect
      assert_equal [1, COMPILED], counts.values_at("data_hit_moved", "stored"), counts.inspect
      assert_empty counts["reasons"]
    end
    folders.each do |folder|
      counts = assert_same_boot(folder)
      assert_nil counts["hit_moved"]
      assert_operator counts["hit"].to_i + counts["hit_by_content"].to_i, :>=, 5, counts.inspect
    end
  end

  # Folders as Capistrano makes them, reached by two links.
  def test_links_to_releases
    counts = %w[current srv/current].flat_map do |link|
      Array.new(2) do |i|
        FileUtils.mkdir_p(File.dirname(file(link)))
        File.unlink(file(link)) if File.symlink?(file(link))
        File.symlink(release("releases/#{i}"), file(link))
        assert_same_loads(file(link))
      end
    end
    assert_nil counts[0]["hit_moved"]
    expected = [4 - COMPILED, COMPILED]
    counts[1..].each { |found| assert_equal expected, found.values_at("hit_moved", "stored"), counts.inspect }
  end

  # Code of a file below a symbolic link has a path and a real path. It can't be made of code with a single path.
  def test_a_link_is_no_plain_path
    release("releases/1")
    File.symlink(file("releases"), file("link"))
    counts = [file("releases/1"), file("link/1")].map { |folder| assert_same_loads(folder) }
    assert_nil counts[1]["hit_moved"]
  end

  # The real path differs from the path if that has "//" or "..", and after its folder has become a link.
  def test_other_real_paths
    write_files("r1/a.rb" => "p __dir__, caller_locations(0).first.absolute_path", "r2/a.rb" => "")
    FileUtils.cp(file("r1/a.rb"), file("r2/a.rb"))
    %w[r1 /r1 r2 /r2 r1/../r2 /r1].each do |name|
      program = ["-e", "load '#{@dir}/#{name}/a.rb'"]
      expected, found = plain(*program), boot(*program)
      assert_same expected, found, "#{name} #{found.counts}"
    end
    FileUtils.cp_r(file("r1"), file("cur"))
    change = "load D + '/cur/a.rb'; File.rename(D + '/cur', D + '/old'); File.symlink('old', D + '/cur'); " \
             "File.write(D + '/old/a.rb', 'p __dir__, 2'); load D + '/cur/a.rb'"
    assert_equal "exit 0", boot("-e", "D = '#{@dir}'", "-e", change).status
    FileUtils.cp_r(file("old"), file("r3"))
    assert_same plain("-e", "load '#{file("r3/a.rb")}'"), boot("-e", "load '#{file("r3/a.rb")}'")
  end

  # Each release is deleted after the next one. Its files leave the pack, although `current` then leads to files with
  # the same names.
  def test_releases_that_are_gone
    sizes = Array.new(6) do |i|
      write_files(Array.new(40) { |n| ["releases/#{i}/f#{n}.rb", "F#{n} = %w[#{"word#{i} " * 1000}]"] }.to_h)
      FileUtils.rm_f(file("current"))
      File.symlink("releases/#{i}", file("current"))
      FileUtils.rm_rf(file("releases/#{i - 1}"))
      boot("-e", "40.times { |n| load '#{file("current")}/f' + n.to_s + '.rb' }")
      Dir[file("cache/*.pack")].sum { |path| File.size(path) }
    end
    assert_operator sizes.last, :<, 3 * sizes.first, sizes.inspect
  end

  # A fourth of Ruby's own libraries, moved to shorter and longer paths. `disasm` shows instructions, texts and places.
  def test_code_of_every_library_is_as_if_compiled_there
    assert_nil Pitwall::Fastboot.unavailable
    files = Dir[File.join(RbConfig::CONFIG["rubylibdir"], "**/*.rb")].sort.each_slice(4).map(&:first)
    moved = files.count { |path| assert_moved(path) }
    assert_operator moved, :>, files.size / 2
  end

  # @return [Boolean] was it moved?
  def assert_moved(path)
    source = File.read(path, encoding: "UTF-8")
    compile = ->(at, real) { RubyVM::InstructionSequence.compile(source, at, real) }
    short, long = "/x/#{File.basename(path)}", "/srv#{"/releases" * 30}/a.rb"
    moves = [[[path] * 2, [short] * 2], [[path] * 2, [long] * 2], [[path, "/real#{path}"], [short, "/a#{short}"]]]
    moves.all? do |from, to|
      keys = [from, to].map { |paths| paths.uniq.join("\0") }
      moved = Pitwall::Fastboot::MovedCode.binary(compile.(*from).to_binary, *keys, source) or next
      code = RubyVM::InstructionSequence.load_from_binary(moved)
      assert_equal [*to, compile.(*to).disasm], [code.path, code.absolute_path, code.disasm]
    end
  end

  # Damaged binaries are refused, or give another binary. None raises an exception.
  def test_damaged_code
    source = "puts __FILE__, [1, :two, 3.0]"
    binary = RubyVM::InstructionSequence.compile(source, "/a/b.rb", "/a/b.rb").to_binary
    move = ->(bytes) { Pitwall::Fastboot::MovedCode.binary(bytes, "/a/b.rb", "/c/d.rb", source) }
    refute_nil move.(binary)
    binary.bytesize.times { |size| assert_nil move.(binary.byteslice(0, size)) }
    random = Random.new(1)
    2000.times do
      bytes = binary.dup
      bytes.setbyte(random.rand(bytes.bytesize), random.rand(256))
      moved = move.(bytes)
      assert_operator moved.bytesize, :<, binary.bytesize + 100 if moved
    end
  end
end
