# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/native_objects"
require_relative "../support/random_recording"
require "pitwall/symbols"

# Native functions that were recorded by address get their names from files with the same build id.
class ResolutionTest < Minitest::Test
  Resolution = Pitwall::Symbols::Resolution
  PATH = "/opt/app/libshop.so"

  def setup
    @objects = NativeObjects.new
    @objects.c
    @functions = @objects.functions("libshop.so")
    @id = @objects.build_id("libshop.so")
  end

  def teardown = @objects.remove

  def recorded(ids: [@id], path: PATH, name: ->(address) { format("libshop.so+0x%x", address) })
    bytes = RecordingBuilder.build do |segment|
      ids.each { |id| segment.shared_object(path, id) }
      stack = [["Object#main", "/app/x.rb", 1, 3, 0], ["shown", path, 0, 0, 3]]
      stack += %w[hidden_too hidden].map { |function| [name.call(@functions[function]), path, 0, 0, 3] }
      segment.row(stack: stack)
    end
    RandomRecording.read(bytes).segments
  end

  # [names of native frames, notes]
  def resolve(segments, *folders)
    resolution = Resolution.new(folders.map { |folder| @objects.path(folder) })
    frames = resolution.call(segments).flat_map { |segment| segment.frames.values }
    [frames.select { |frame| frame.kind == 3 }.map(&:name), resolution.notes, resolution.named]
  end

  def unnamed = %w[hidden_too hidden].map { |name| format("libshop.so+0x%x", @functions[name]) }

  def fill(folder, file, other = "libshop.so")
    FileUtils.mkdir_p(File.dirname(@objects.path("#{folder}/#{file}")))
    FileUtils.cp(@objects.path(other), @objects.path("#{folder}/#{file}"))
  end

  def assert_named(*folders) = assert_equal([%w[shown hidden_too hidden], [], 2], resolve(recorded, *folders))

  def test_an_unstripped_object_whatever_it_is_called
    fill("symbols", "deep/er/anything")
    assert_named "symbols"
  end

  def test_a_debug_file_by_build_id
    @objects.debug_file("libshop.so", "symbols/.build-id/#{@id[0, 2]}/#{@id[2..]}.debug")
    assert_named "symbols"
    @objects.debug_file("libshop.so", "root/usr/lib/debug/.build-id/#{@id[0, 2]}/#{@id[2..]}.debug")
    assert_named "root"
    assert_named "root/usr/lib/debug/.build-id"
  end

  def test_the_file_with_all_symbols_of_several
    @objects.stripped("libshop.so", "stripped.so")
    fill("a", "libshop.so", "stripped.so")
    @objects.debug_file("libshop.so", "b/libshop.so.debug")
    assert_named "a", "b"
  end

  def test_a_stripped_object_names_nothing_more
    @objects.stripped("libshop.so", "stripped.so")
    fill("symbols", "libshop.so", "stripped.so")
    names, notes, = resolve(recorded, "symbols")
    assert_equal unnamed, names.drop(1)
    assert_match(/libshop.so: has the build id of libshop.so, but no symbols for these functions/, notes.join)
  end

  def test_the_same_name_with_another_build_id_is_refused
    @objects.c("other.so", text: "#{NativeObjects::C} int more(void) { return 1; }")
    fill("symbols", "libshop.so", "other.so")
    names, notes, named = resolve(recorded, "symbols")
    assert_equal [unnamed, 0], [names.drop(1), named]
    assert_equal ["#{@objects.path("symbols/libshop.so")}: is not used for libshop.so: it has the build id " \
                  "#{@objects.build_id("other.so")}, and #{@id} was recorded"], notes
  end

  def test_the_same_name_without_build_id_is_refused
    @objects.without_build_id("libshop.so", "nameless.so")
    fill("symbols", "libshop.so", "nameless.so")
    names, notes, = resolve(recorded, "symbols")
    assert_equal unnamed, names.drop(1)
    assert_match(/is not used for libshop.so: it has no build id, and \h{40} was recorded/, notes.join)
  end

  def test_objects_that_cannot_be_known_for_sure
    fill("symbols", "libshop.so")
    assert_match(/recorded without a build id/, resolve(recorded(ids: [""]), "symbols")[1].join)
    assert_match(/recorded without a build id/, resolve(recorded(ids: []), "symbols")[1].join)
    assert_match(/replaced while it was recorded/, resolve(recorded(ids: [@id, "00ff"]), "symbols")[1].join)
    assert_match(/no file has its build id 00ff/, resolve(recorded(ids: ["00ff"]), "symbols/none")[1].join)
  end

  def test_names_that_only_look_alike_stay
    fill("symbols", "libshop.so")
    name = ->(address) { format("operator+0x%x", address) }
    names, notes, named = resolve(recorded(name: name), "symbols")
    assert_equal [0, []], [named, notes]
    assert_match(/\Aoperator\+0x/, names.last)
  end

  # Ids come from files that anybody may have written.
  def test_a_build_id_is_no_path
    ["../../etc/passwd", "ab/../..", "a", "zz", "\0\0", "ab" * 65].each do |id|
      assert_equal [""], recorded(ids: [id]).first.shared_objects.map(&:build_id)
    end
  end

  def test_folders_with_pipes_loops_and_damaged_objects
    fill("symbols", "z/libshop.so")
    File.mkfifo(@objects.path("symbols/pipe"))
    File.symlink("..", @objects.path("symbols/z/loop"))
    File.symlink("nowhere", @objects.path("symbols/dangling"))
    File.binwrite(@objects.path("symbols/cut.so"), File.binread(@objects.path("libshop.so"), 300))
    assert_named "symbols"
  end

  def test_a_file_with_the_right_build_id_and_damaged_symbols_is_told
    fill("symbols", "libshop.so")
    path = @objects.path("symbols/libshop.so")
    bytes = File.binread(path)
    sections, count = bytes.unpack1("@40Q<"), bytes.unpack1("@60S<")
    heads = Array.new(count) { |at| sections + at * 64 }
    heads.each { |at| bytes[at + 32, 8] = [2**60].pack("Q<") if bytes.unpack1("@#{at + 4}L<") == 2 }
    File.binwrite(path, bytes)
    names, notes, = resolve(recorded, "symbols")
    assert_equal unnamed, names.drop(1)
    assert_match(/is cut or damaged|Pitwall reads up to/, notes.first)
  end
end
