# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require "minitest/mock"
require "pitwall/fastboot/setup"

# The pack: what is written is read again, and nothing else is.
class FastbootPackTest < Minitest::Test
  include CommandLine

  Fastboot = Pitwall::Fastboot
  OPTIONS = 7

  def setup
    super
    assert_nil Fastboot.unavailable
    @store = Fastboot::Store.new(file("cache"))
  end

  # A file's code as an addition to the pack.
  def addition(name, source = "1; :#{name}", **changes)
    path = file("#{name}.rb")
    File.write(path, source) unless File.exist?(path)
    key, attributes = native.place(path)
    code = RubyVM::InstructionSequence.compile(source, path, path)
    values = { attributes: attributes, digest: native.digest(source), body: code.to_binary, **changes }
    Fastboot::Store::Addition.new(Fastboot::Format::CODE, key, OPTIONS, *values.values_at(:attributes, :digest, :body))
  end

  def native = Fastboot::Native

  def load(name, pack = @store.open) = pack.load(Fastboot::Format::CODE, file("#{name}.rb"), OPTIONS)

  # As after the checkout of another branch: the pack has the content, and all attributes are new. To rewrite the pack
  # would drop the code of the first branch.
  def test_new_attributes_leave_the_pack_as_it_is
    additions = Array.new(20) { |n| addition("f#{n}", body: "x" * 30_000) }
    assert_nil @store.add(additions)
    before = File.stat(@store.path)
    assert_operator before.size, :>, 1 << 19, "enough to be worth it"
    touched = additions.map { |one| one.dup.tap { |it| it.body, it.attributes = nil, [1, 2, 3, 4, 5] } }
    assert_nil @store.add(touched)
    assert_equal before.ino, File.stat(@store.path).ino
  end

  def test_digests_are_those_of_blake2b
    skip "peer absent: b2sum" unless system("b2sum", "--version", out: File::NULL, err: File::NULL)
    texts = ["", "a", "a" * 127, "b" * 128, "c" * 129, Random.new(1).bytes(5000)]
    texts.each_with_index { |text, i| File.binwrite(file("text#{i}"), text) }
    out = capture({}, "b2sum", "-l", "256", *texts.each_index.map { |i| file("text#{i}") }).out
    assert_equal out.lines.map { |line| line[/\h+/] }, texts.map { |text| native.digest(text).unpack1("H*") }
  end

  def test_what_is_added_is_loaded
    assert_equal "there is none yet", @store.open
    assert_nil @store.add([addition("a")])
    assert_nil @store.add([addition("a"), addition("b")]) # one of them is there
    assert_equal %i[a b odd], [load("a").eval, load("b").eval, load("c")]
    assert_equal 2, @store.open.facts[2]
    assert_equal :missing, @store.open.load(Fastboot::Format::CODE, file("a.rb"), OPTIONS + 1)
  end

  # A child that another thread forks while the pack is written.
  def test_a_child_does_not_keep_the_lock
    child = nil
    @store.send(:locked, true) { (child = fork { sleep }) && nil }
    assert_nil @store.add([addition("a")])
    assert_equal :a, load("a").eval
  ensure
    Process.kill(:KILL, child) && Process.wait(child) if child
  end

  # Code and data of one file, with one number of options, are two records. So are their new attributes.
  def test_kinds_do_not_take_each_others_place
    code, data = addition("a"), addition("a").tap { |other| other.kind, other.body = Fastboot::Format::DATA, "bytes" }
    find = ->(kind) { @store.open.load(kind, file("a.rb"), OPTIONS) }
    @store.add([data])
    assert_equal [:missing, "bytes"], [load("a"), find.call(Fastboot::Format::DATA)]
    @store.add([code])
    assert_equal [:a, "bytes"], [load("a").eval, find.call(Fastboot::Format::DATA)]
    File.utime(0, 0, file("a.rb"))
    data.attributes, data.body = native.place(file("a.rb")).last, nil
    @store.add([data])
    assert_equal [:changed, "bytes"], [load("a"), find.call(Fastboot::Format::DATA)]
    assert_nil @store.prune
    assert_equal [:changed, "bytes", 2], [load("a"), find.call(Fastboot::Format::DATA), @store.open.facts[2]]
  end

  # Each of them is a change that the file's size does not show.
  CHANGES = {
    "an edit with the same size, and the old time put back" => lambda { |path|
      time = File.mtime(path)
      File.write(path, File.read(path).tr("1", "2"))
      File.utime(time, time, path)
    },
    "another file of the same size and time, renamed over it" => lambda { |path|
      File.write("#{path}.new", File.read(path).tr("1", "2"))
      File.utime(File.mtime(path), File.mtime(path), "#{path}.new")
      File.rename("#{path}.new", path)
    },
    "a link to another file in its place" => lambda { |path|
      File.rename(path, "#{path}.old")
      File.write("#{path}.other", File.read("#{path}.old").tr("1", "2"))
      File.symlink("#{path}.other", path)
    },
    "only a new time" => ->(path) { File.utime(0, 0, path) }
  }.freeze

  def test_no_change_goes_unseen
    CHANGES.each_with_index do |(how, change), i|
      @store.add([addition("f#{i}")])
      assert_equal :"f#{i}", load("f#{i}").eval
      sleep 0.03 # a kernel's clock ticks every 1 to 10 ms
      change.call(file("f#{i}.rb"))
      assert_includes %i[changed missing], load("f#{i}"), how
    end
  end

  # The same file under a folder that was renamed, with a link at the old path: __dir__ would be wrong.
  def test_another_real_path_is_another_file
    Dir.mkdir(file("one"))
    File.write(file("one/a.rb"), ":a")
    File.symlink(file("one"), file("current"))
    key, = native.place(file("current/a.rb"))
    assert_equal "#{file("current/a.rb")}\0#{file("one/a.rb")}".b, key
    File.rename(file("one"), file("two"))
    File.unlink(file("current"))
    File.symlink(file("two"), file("current"))
    refute_equal key, native.place(file("current/a.rb")).first
  end

  # In a Fiber, which has a small stack.
  def test_deep_folders
    deep = file((["d"] * 300).join("/"))
    FileUtils.mkdir_p(deep)
    File.write("#{deep}/a.rb", "1")
    Fiber.new { 2.times { assert_equal "#{deep}/a.rb", native.place("#{deep}/a.rb").first } }.resume
    File.symlink(file("d/d"), file("link"))
    key, = native.place("#{deep.sub("/d/d/", "/link/")}/a.rb")
    assert_equal "#{deep.sub("/d/d/", "/link/")}/a.rb\0#{deep}/a.rb", key
  end

  # What Ruby does not take is refused, but an interrupt or a `throw` is the program's.
  def test_exceptions_of_loading
    @store.add([addition("a")])
    code = RubyVM::InstructionSequence
    [RuntimeError, NoMemoryError].each do |error|
      code.stub(:load_from_binary, ->(_) { raise error }) { assert_equal :refused, load("a") }
    end
    code.stub(:load_from_binary, ->(_) { raise Interrupt }) { assert_raises(Interrupt) { load("a") } }
    code.stub(:load_from_binary, ->(_) { throw :out, 1 }) { assert_equal(1, catch(:out) { load("a") }) }
    assert_equal :a, load("a").eval
  end

  def test_a_damaged_record_is_replaced
    @store.add([addition("a")])
    bytes = File.binread(@store.path)
    bytes.setbyte(-40, bytes.getbyte(-40) ^ 1)
    File.binwrite(@store.path, bytes)
    assert_equal :damaged, load("a")
    assert_nil @store.add([addition("a")], replace: true)
    assert_equal :a, load("a").eval
  end

  def test_a_frozen_pack_is_relied_on_and_not_written
    @store.add([addition("a")])
    assert_nil @store.prune(frozen: true)
    File.write(file("a.rb"), "something else")
    assert_equal :a, load("a").eval
    assert_equal "the pack is frozen", @store.add([addition("b")])
  end

  # Any byte may be wrong and the file may end anywhere: code is what it was, or it is not given.
  def test_damaged_packs
    names = %w[a b c]
    @store.add(names.map { |name| addition(name) })
    good = File.binread(@store.path)
    random = Random.new(4)
    given = 0
    200.times do
      bytes = random.rand(3).zero? ? good[0, random.rand(good.size)] : good.dup
      random.rand(1..4).times { bytes.setbyte(random.rand(bytes.size), random.rand(256)) } unless bytes.empty?
      File.binwrite("#{@store.path}.new", bytes)
      File.rename("#{@store.path}.new", @store.path)
      pack = @store.open
      next assert_kind_of(String, pack) if pack.is_a?(String)

      names.each do |name|
        found = load(name, pack)
        next assert_includes(%i[missing changed damaged], found) if found.is_a?(Symbol)

        given += 1
        assert_equal name.to_sym, found.eval
      end
    end
    assert_operator given, :>, 100
    # The next writer mends it.
    assert_nil @store.add([addition("d")], replace: true)
    assert_equal :d, load("d").eval
  end

  def test_a_killed_writer_leaves_whole_records
    @store.add([addition("a")])
    many = Array.new(60) { |i| addition("many#{i}", ":many#{i}; #{"x = 'some text'; " * 300}") }
    8.times do |i|
      pid = fork do
        many.rotate(i * 7).each_slice(6) { |some| @store.add(some) }
        exit!(0)
      end
      sleep 0.002 * i
      Process.kill(:KILL, pid)
      Process.wait(pid)
      assert_equal :a, load("a").eval
      @store.open.then { |pack| pack.versions.each_index { |number| refute_nil pack.body(number) } }
    end
    assert_nil @store.add(many, wait: true)
    assert_equal 61, @store.open.facts[2]
    assert_empty Dir[file("cache/*.new")]
  end

  def test_many_edits_do_not_make_it_grow
    body = Random.new(1).bytes(20_000)
    File.write(file("a.rb"), "1")
    sizes = Array.new(80) do |i|
      @store.add([addition("a", body: body, digest: native.digest(i.to_s))])
      File.size(@store.path)
    end
    assert_operator sizes.max, :<, 400_000
    File.unlink(file("a.rb"))
    @store.prune
    assert_equal 64, File.size(@store.path)
  end

  def test_packs_of_other_users_are_not_used
    @store.add([addition("a")])
    File.chmod(0o664, @store.path)
    assert_equal "other users may write it", @store.open
    File.chmod(0o644, @store.path)
    if Process.euid.zero?
      File.chown(12_345, nil, @store.path)
      assert_equal "it belongs to another user", @store.open
      File.chown(0, nil, @store.path)
    end
    File.rename(@store.path, file("elsewhere"))
    File.symlink(file("elsewhere"), @store.path)
    assert_kind_of String, @store.open
    File.chmod(0o777, file("cache"))
    assert_match(/\Aother users may write/, Fastboot::Folder.refusal(file("cache")))
  end

  def test_where_the_cache_is
    Dir.mkdir(file("app"))
    Dir.mkdir(file("app/tmp"))
    File.write(file("app/Gemfile"), "")
    { { "PITWALL_BOOT_CACHE" => "x" } => file("app/x"), {} => file("app/tmp/cache/pitwall"),
      { "BUNDLE_GEMFILE" => "/nowhere/Gemfile", "HOME" => "/h" } => "/h/.cache/pitwall",
      { "BUNDLE_GEMFILE" => "/nowhere/Gemfile", "XDG_CACHE_HOME" => "/x" } => "/x/pitwall",
      { "BUNDLE_GEMFILE" => "/nowhere/Gemfile" } => nil }.each do |env, expected|
      found = Fastboot::Folder.default(env, here: file("app"))
      expected ? assert_equal(expected, found, env.inspect) : assert_nil(found)
    end
  end
end
