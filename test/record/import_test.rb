# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/imported"

# What all formats share: recognition, limits, refusals. Each format has its own test in test/record/import/.
class ImportTest < Minitest::Test
  include Imported
  include CommandLine

  COLLAPSED = "main;Shop#sum;Array#each 1200\nmain;Shop#sum 300\n"

  def test_a_file_in_no_format_is_refused
    assert_match(/: is in none of the formats that can be imported: .*collapsed/, refused("nothing\n"))
    assert_match(/: is empty\z/, refused(""))
    assert_match(/: is a recording already/, refused("PITWALL 1\n"))
    assert_match(/: is a program, not a profile\z/, refused("\x7FELF\x02"))
    assert_match(/: starts as JSON and is damaged\z/, refused("{\"a\": "))
    assert_match(/: is JSON nested deeper than 100 levels\z/, refused("[" * 1000 + "]" * 1000))
  end

  def test_gzip_is_decompressed_also_in_several_parts
    parts = COLLAPSED.lines.map { |line| Zlib.gzip(line) }.join
    assert_equal imported(COLLAPSED).segments.first.tallies.first.cells, imported(parts).segments.first.tallies.first.cells
    assert_match(/: is compressed by gzip and cut off\z/, refused(Zlib.gzip(COLLAPSED)[0..-9]))
    bad = Zlib.gzip(COLLAPSED * 10_000)
    bad[bad.bytesize / 2] = (bad.getbyte(bad.bytesize / 2) ^ 0x55).chr
    assert_match(/gzip and (damaged|cut off)\z/, refused(bad))
  end

  def test_a_file_that_is_too_large_is_refused_before_it_fills_the_memory
    bomb = Zlib.gzip("{\"a\": [" + " " * 10_000_000)
    message = refused(bomb, max_bytes: 1_000_000)
    assert_match(/: holds more than 1000000 bytes when decompressed\z/, message)
  end

  def test_a_line_that_never_ends_is_refused
    assert_match(/: has a line of more than 1048576 bytes\z/, refused("a;b 1\n#{"x" * 3_000_000}"))
  end

  def test_nothing_is_left_of_an_import_that_fails
    File.write(file("bad.txt"), "a;b 1\n#{"x" * 3_000_000}")
    result = pitwall("import", "bad.txt", "--out", "out.pit", env: { "PITWALL_DEBUG" => nil })
    assert_equal [5, "", 1], [result.status.exitstatus, result.out, result.err.lines.size]
    assert_equal ["bad.txt"], Dir.children(@dir) - [".tmp"]
  end
end
