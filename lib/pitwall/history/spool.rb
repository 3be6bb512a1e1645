# frozen_string_literal: true

require "digest"
require "fileutils"
require "json"
require "pitwall/errors"
require "pitwall/history/run"

module Pitwall
  module History
    # A folder of results that their database did not take: one file each. A file goes only after the database has said
    # that it has the results. Sent twice, they are in the database once, because runs have ids of their content.
    class Spool
      SCHEMA = "pitwall/history-spool-1"
      ENDING = ".spooled.json"
      private_constant :SCHEMA, :ENDING

      # What a file holds. to: the database, without its password
      Parcel = Struct.new(:path, :to, :project, :runs, keyword_init: true)

      #: (String) -> void
      def initialize(folder)
        @folder = folder
      end

      # Keeps runs. When it returns, they are on the disk.
      # @raise [Store::Unavailable] the folder can't be written
      #: (Address, String, Array[Run]) -> String
      def keep(address, project, runs)
        text = JSON.generate("schema" => SCHEMA, "to" => address.to_s, "project" => project,
                             "runs" => runs.map(&:to_object))
        FileUtils.mkdir_p(@folder, mode: 0o700)
        path = File.join(@folder, "#{Digest::SHA256.hexdigest(text).slice(0, 32)}#{ENDING}")
        write(path, text)
        path
      rescue SystemCallError => error
        raise Store::Unavailable, "#{@folder}: #{SystemCallError.new(error.errno).message}"
      end

      # What waits for a database.
      # @return [Array<Parcel>]
      #: (Address) -> Array[Parcel]
      def waiting(address) = all.select { |parcel| parcel.to == address.to_s }

      # Sends what waits for a database.
      # @return the number of runs that were sent
      # @raise [Store::Unavailable] what was not sent stays
      #: (Store) -> Integer
      def send_to(store)
        waiting(store.address).sum do |parcel|
          store.add(parcel.project, parcel.runs)
          FileUtils.rm_f(parcel.path)
          parcel.runs.size
        end
      end

      private

      # The rename comes after the content is on the disk, and the folder's entry is written before the end.
      def write(path, text)
        part = "#{path}.#{Process.pid}.part"
        File.open(part, "wx", 0o600) do |file|
          file.write(text)
          file.fsync
        end
        File.rename(part, path)
        File.open(@folder, &:fsync)
      ensure
        FileUtils.rm_f(part)
      end

      def all = Dir[File.join(@folder, "*#{ENDING}")].sort.map { |path| read(path) }

      def read(path)
        object = JSON.parse(File.read(path, encoding: "UTF-8"))
        raise BadRecording, "#{path}: kept by a newer Pitwall" unless object["schema"] == SCHEMA

        Parcel.new(path: path, to: object.fetch("to"), project: object.fetch("project"),
                   runs: object.fetch("runs").map { |run| Run.from_object(run) })
      rescue JSON::ParserError, KeyError, ArgumentError, NoMethodError, TypeError
        raise BadRecording, "#{path}: damaged; nothing was sent: move the file away"
      end
    end
  end
end
